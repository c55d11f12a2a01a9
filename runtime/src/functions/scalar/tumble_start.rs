//! `tumble_start`: the start of the tumbling window that holds a time.

use datafusion::logical_expr::ScalarUDF;

use super::windows::{WindowFunction, WindowKind};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "tumble_start",
    forms: &[
        "tumble_start(time timestamp, size interval [, offset interval]) → timestamp",
        "tumble_start(time timestamptz, size interval [, offset interval]) → timestamptz",
    ],
    text: "The start of the window of the given size that holds the time. Windows follow each other without gaps; one \
           starts at 1970-01-01 00:00 UTC plus the offset. A size in months or years counts calendar months. NULL if \
           the time is NULL. A `date` is taken as its midnight.",
    examples: &[
        Example {
            query: "SELECT tumble_start(timestamp '2024-01-01 10:47:12', interval '15 minutes')",
            result: "2024-01-01 10:45:00",
        },
        Example {
            query: "SELECT tumble_start(timestamp '2024-01-01 05:59:59', interval '1 day', interval '6 hours')",
            result: "2023-12-31 06:00:00",
        },
        Example {
            query: "SELECT tumble_start(timestamp '2024-05-17 12:00:00', interval '3 months')",
            result: "2024-04-01 00:00:00",
        },
        Example {
            query: "SELECT tumble_start(timestamp '1969-12-31 23:59:59', interval '1 hour')",
            result: "1969-12-31 23:00:00",
        },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    ScalarUDF::from(WindowFunction::new("tumble_start", WindowKind::TumbleStart))
}
