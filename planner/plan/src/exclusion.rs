//! Frames that leave rows out (`EXCLUDE CURRENT ROW`, `GROUP`, `TIES`), as calls of a window function.
//!
//! DataFusion's frames have no exclusion. So `f(x) FILTER (WHERE c) OVER (ORDER BY k ROWS ... EXCLUDE TIES)` is planned as a call
//! of another function, `f excluding`, which the runtime brings for every `f` that looks at its frame. Its arguments are those
//! of `f`, then the condition, then what is left out, then the keys of the ORDER BY, by whose equality rows are peers (the
//! order of the window itself may be continued to break ties). What is left out is a text in a dictionary, a type that no
//! column has, so that its place is known by the types alone.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

/// The end of the names of functions over frames with an exclusion.
const SUFFIX: &str = " excluding";

/// What a frame leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exclusion {
    /// The current row.
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// The peers of the current row.
    Ties,
}

impl Exclusion {
    /// As it is written behind EXCLUDE.
    pub fn text(self) -> &'static str {
        match self {
            Exclusion::CurrentRow => "CURRENT ROW",
            Exclusion::Group => "GROUP",
            Exclusion::Ties => "TIES",
        }
    }

    /// Of a text behind EXCLUDE.
    pub fn of_text(text: &str) -> Option<Exclusion> {
        [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties]
            .into_iter()
            .find(|exclusion| exclusion.text() == text)
    }

    /// As an argument; repeated values of the frame count once if they are distinct.
    pub fn argument(self, distinct: bool) -> Expr {
        let text = if distinct { format!("{} DISTINCT", self.text()) } else { self.text().to_owned() };
        let text = ScalarValue::Utf8(Some(text));
        Expr::Literal(ScalarValue::Dictionary(Box::new(DataType::Int8), Box::new(text)), None)
    }

    /// Of an argument, with whether values are distinct.
    pub fn of_argument(value: &ScalarValue) -> Option<(Exclusion, bool)> {
        let ScalarValue::Dictionary(_, text) = value else { return None };
        let text = text.try_as_str().flatten()?;
        match text.strip_suffix(" DISTINCT") {
            Some(text) => Some((Exclusion::of_text(text)?, true)),
            None => Some((Exclusion::of_text(text)?, false)),
        }
    }
}

/// The name of a function over frames with an exclusion.
pub fn excluding(function: &str) -> String {
    format!("{function}{SUFFIX}")
}

/// The function whose name over frames with an exclusion this is.
pub fn excluded(name: &str) -> Option<&str> {
    name.strip_suffix(SUFFIX)
}

/// The place of what is left out among the types of arguments; the condition is before it.
pub fn place_of<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Option<usize> {
    let place = types.into_iter().position(|data_type| matches!(data_type, DataType::Dictionary(..)));
    place.filter(|place| *place > 0)
}

/// A call's own arguments and what its frame leaves out, for what reads plans.
pub fn parts(arguments: &[Expr]) -> Option<(&[Expr], &Expr, Exclusion)> {
    let place = arguments.iter().position(|argument| exclusion(argument).is_some()).filter(|place| *place > 0)?;
    let (before, rest) = arguments.split_at(place);
    let (condition, values) = before.split_last()?;
    Some((values, condition, exclusion(rest.first()?)?))
}

fn exclusion(argument: &Expr) -> Option<Exclusion> {
    match argument {
        Expr::Literal(value, _) => Exclusion::of_argument(value).map(|(exclusion, _)| exclusion),
        _ => None,
    }
}
