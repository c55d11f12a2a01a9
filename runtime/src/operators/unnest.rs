//! Unnest: a row for each item of its lists.
//!
//! `out = { (row with lists replaced by their items at i) | row in input, 0 <= i < longest list of the row }`, with the
//! row's weight; a list that is shorter gives NULL. Columns of structs are replaced by their fields. The operator keeps
//! nothing. Whether NULL and empty lists give a row of NULL follows the plan's options.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr::LogicalPlan;
use plan::{Cost, Distribution, Lower, LowerContext, Lowered, PlanError, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef, Output, spec_of};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::expressions::batch_of;

const NAME: &str = "unnest";

/// Recognises and builds unnesting.
#[derive(Debug)]
pub struct UnnestDefinition;

/// Unnesting as data.
#[derive(Debug, Clone)]
struct Unnest {
    /// Input columns whose lists are unnested, together.
    lists: Vec<usize>,
    /// Input columns whose structs become columns.
    structs: Vec<usize>,
    /// A NULL list gives a row of NULL.
    null_gives_row: bool,
    /// An empty list gives a row of NULL.
    empty_gives_row: bool,
    /// For each output column, the input column that it hands through, if it does.
    handed_through: Vec<Option<usize>>,
    schema: SchemaRef,
    text: String,
}

impl Spec for Unnest {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let position = |column| self.handed_through.iter().position(|from| *from == Some(column));
        // A row may become many, so it is no longer known by its key; only structs leave rows alone.
        let keys = if self.lists.is_empty() { inputs[0].project_keys(position) } else { Vec::new() };
        Properties {
            keys,
            append_only: inputs[0].append_only,
            watermarks: inputs[0].watermarks.iter().filter_map(|column| position(*column)).collect(),
            extent: match self.lists.is_empty() {
                true => inputs[0].extent.clone(),
                false => inputs[0].extent.clone().expanded(),
            },
            state: StateBound::Stateless,
        }
    }

    fn cost(&self) -> Cost {
        if self.lists.is_empty() { Cost::Constant } else { Cost::Matches }
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::Any
    }

    fn state_tables(&self) -> usize {
        0
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lower for UnnestDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Unnest(unnest) = plan else { return Ok(Lowered::Declined(None)) };
        let input_schema = unnest.input.schema();
        let mut lists = Vec::new();
        for (column, list) in &unnest.list_type_columns {
            let is_list = matches!(input_schema.field(*column).data_type(), DataType::List(_));
            if list.depth != 1 || !is_list || lists.contains(column) {
                return Ok(Lowered::Declined(Some("lists inside lists are unnested".to_string())));
            }
            lists.push(*column);
        }
        let structs = unnest.struct_type_columns.clone();
        if structs.iter().any(|column| lists.contains(column)) {
            return Ok(Lowered::Declined(Some("lists of structs are unnested into columns".to_string())));
        }
        let schema = unnest.schema.inner().clone();
        let handed_through =
            (0..input_schema.fields().len()).flat_map(|column| match input_schema.field(column).data_type() {
                DataType::Struct(fields) if structs.contains(&column) => vec![None; fields.len()],
                _ if lists.contains(&column) => vec![None],
                _ => vec![Some(column)],
            });
        let handed_through: Vec<Option<usize>> = handed_through.collect();
        if handed_through.len() != schema.fields().len() {
            return Err(PlanError::internal("an unnest has other columns than its input gives"));
        }
        let spec = Unnest {
            text: lists
                .iter()
                .chain(&structs)
                .map(|column| input_schema.field(*column).name().as_str())
                .collect::<Vec<_>>()
                .join(", "),
            lists,
            structs,
            null_gives_row: unnest.options.preserve_nulls(),
            empty_gives_row: unnest.options.expand_empty_as_null(),
            handed_through,
            schema,
        };
        let input = context.lower(&unnest.input)?;
        Ok(Lowered::Node(context.add(Arc::new(spec), vec![input])))
    }
}

impl OperatorDef for UnnestDefinition {
    fn build(&self, spec: &dyn Spec, _context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Unnest = spec_of(spec)?;
        Ok(Box::new(UnnestOperator { spec: spec.clone() }))
    }
}

struct UnnestOperator {
    spec: Unnest,
}

impl Operator for UnnestOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        let columns = delta.batch().columns();
        let (rows, mut columns) = if self.spec.lists.is_empty() {
            (None, columns.to_vec())
        } else {
            let rows = self.rows(&delta)?;
            let columns = columns
                .iter()
                .enumerate()
                .map(|(column, array)| match self.spec.lists.contains(&column) {
                    true => self.items(list(array)?, &rows),
                    false => Ok(compute::take(array, &rows, None)?),
                })
                .collect::<Result<Vec<_>>>()?;
            (Some(rows), columns)
        };
        let count = rows.as_ref().map_or(delta.len(), |rows| rows.len());
        if !self.spec.structs.is_empty() {
            columns = columns
                .into_iter()
                .enumerate()
                .flat_map(|(column, array)| match array.as_struct_opt() {
                    Some(fields) if self.spec.structs.contains(&column) => fields_of(fields),
                    _ => vec![array],
                })
                .collect();
        }
        let batch = batch_of(&self.spec.schema, columns, count)?;
        let weights = match (delta.weights(), rows) {
            (Some(weights), Some(rows)) => {
                Some(Int64Array::from_iter_values(rows.values().iter().map(|row| weights.value(*row as usize))))
            }
            (weights, _) => weights.cloned(),
        };
        output.emit(Delta::new(batch, weights));
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}

impl UnnestOperator {
    /// For each output row, the input row that it comes from.
    fn rows(&self, delta: &Delta) -> Result<UInt32Array> {
        let lists =
            self.spec.lists.iter().map(|column| list(delta.batch().column(*column))).collect::<Result<Vec<_>>>()?;
        let mut rows: Vec<u32> = Vec::with_capacity(delta.len());
        for row in 0..delta.len() {
            let longest = lists.iter().map(|list| self.length(list, row)).max().unwrap_or(0);
            rows.extend(std::iter::repeat_n(row as u32, longest));
        }
        Ok(UInt32Array::from(rows))
    }

    fn length(&self, list: &ListArray, row: usize) -> usize {
        if list.is_null(row) {
            return usize::from(self.spec.null_gives_row);
        }
        match list.value_length(row) as usize {
            0 => usize::from(self.spec.empty_gives_row),
            length => length,
        }
    }

    /// The items of a list column, for output rows that come from the given input rows.
    fn items(&self, list: &ListArray, rows: &UInt32Array) -> Result<ArrayRef> {
        let offsets = list.value_offsets();
        let mut positions = datafusion::arrow::array::UInt32Builder::with_capacity(rows.len());
        let mut previous = None;
        let mut item = 0;
        for row in rows.values() {
            item = if previous == Some(*row) { item + 1 } else { 0 };
            previous = Some(*row);
            let row = *row as usize;
            let present = !list.is_null(row) && item < list.value_length(row);
            positions.append_option(present.then(|| (offsets[row] + item) as u32));
        }
        Ok(compute::take(list.values(), &positions.finish(), None)?)
    }
}

fn list(array: &ArrayRef) -> Result<&ListArray> {
    array.as_list_opt::<i32>().ok_or_else(|| Error::Dataflow(format!("a list was planned, {} came", array.data_type())))
}

/// The fields of structs as columns; as in ad-hoc queries, they are taken as they are where the struct is NULL.
fn fields_of(array: &datafusion::arrow::array::StructArray) -> Vec<ArrayRef> {
    array.columns().to_vec()
}
