//! `hop_starts`: the starts of all hopping windows that hold a time.

use datafusion::logical_expr::ScalarUDF;

use super::windows::{WindowFunction, WindowKind};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "hop_starts",
    forms: &[
        "hop_starts(time timestamp, slide interval, size interval [, offset interval]) → timestamp[]",
        "hop_starts(time timestamptz, slide interval, size interval [, offset interval]) → timestamptz[]",
    ],
    text: "The starts of the windows of the given size that hold the time, in ascending order, where a window starts \
           every slide. The size need not be a multiple of the slide; if it is smaller, a time between two windows \
           has no start. An empty array if the time is NULL.",
    examples: &[
        Example {
            query: "SELECT hop_starts(timestamp '2024-01-01 10:07:00', interval '5 minutes', interval '10 minutes')",
            result: "{\"2024-01-01 10:00:00\",\"2024-01-01 10:05:00\"}",
        },
        Example {
            query: "SELECT hop_starts(timestamp '2024-01-01 10:07:00', interval '1 hour', interval '5 minutes')",
            result: "{}",
        },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    ScalarUDF::from(WindowFunction::new("hop_starts", WindowKind::HopStarts))
}
