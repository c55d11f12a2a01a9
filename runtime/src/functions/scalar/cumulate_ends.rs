//! `cumulate_ends`: the ends of all cumulative windows that hold a time.

use datafusion::logical_expr::ScalarUDF;

use super::windows::{WindowFunction, WindowKind};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "cumulate_ends",
    forms: &[
        "cumulate_ends(time timestamp, step interval, size interval [, offset interval]) → timestamp[]",
        "cumulate_ends(time timestamptz, step interval, size interval [, offset interval]) → timestamptz[]",
    ],
    text: "The ends of the windows that hold the time, in ascending order, where windows begin every size and grow by the \
           step until they have the size. All of them begin at `tumble_start(time, size, offset)`. The size need not be a \
           multiple of the step; the last window has the size in any case. An empty array if the time is NULL.",
    examples: &[
        Example {
            query: "SELECT cumulate_ends(timestamp '2024-01-01 10:07:00', interval '5 minutes', interval '15 minutes')",
            result: "{\"2024-01-01 10:10:00\",\"2024-01-01 10:15:00\"}",
        },
        Example {
            query: "SELECT cumulate_ends(date '2024-02-28', interval '1 day', interval '1 month')",
            result: "{\"2024-02-29 00:00:00\",\"2024-03-01 00:00:00\"}",
        },
        Example {
            query: "SELECT cumulate_ends(timestamp '2024-01-01 10:57:00', interval '25 minutes', interval '1 hour')",
            result: "{\"2024-01-01 11:00:00\"}",
        },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    ScalarUDF::from(WindowFunction::new("cumulate_ends", WindowKind::CumulateEnds))
}
