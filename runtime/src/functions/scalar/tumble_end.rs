//! `tumble_end`: the end of the tumbling window that holds a time.

use datafusion::logical_expr::ScalarUDF;

use super::windows::{WindowFunction, WindowKind};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "tumble_end",
    forms: &[
        "tumble_end(time timestamp, size interval [, offset interval]) → timestamp",
        "tumble_end(time timestamptz, size interval [, offset interval]) → timestamptz",
    ],
    text: "The end of the window that `tumble_start` gives the start of. The end is not part of the window.",
    examples: &[
        Example {
            query: "SELECT tumble_end(timestamp '2024-01-01 10:47:12', interval '15 minutes')",
            result: "2024-01-01 11:00:00",
        },
        Example { query: "SELECT tumble_end(date '2024-02-11', interval '1 month')", result: "2024-03-01 00:00:00" },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    ScalarUDF::from(WindowFunction::new("tumble_end", WindowKind::TumbleEnd))
}
