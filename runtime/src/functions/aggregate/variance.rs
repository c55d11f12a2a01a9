//! Variances and standard deviations.

use datafusion::logical_expr::AggregateUDF;

use super::invertible::Invertible;
use super::moments::Moment;
use super::udaf::InvertibleFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// `var_pop`.
pub static VAR_POP: FunctionDef = FunctionDef {
    name: "var_pop",
    forms: &[
        "var_pop(smallint | integer | bigint | numeric) → numeric",
        "var_pop(real | double precision) → double precision",
    ],
    text: "The population variance of the values that are not NULL: the mean square of their distance from the mean; NULL if \
           there are none. It is computed from exact sums, so it does not depend on the order of rows, and values leave it \
           again. NaN and infinities give NaN. Numeric results have 16 digits after the point, or more if the values have.",
    examples: &[
        Example { query: "SELECT var_pop(x) FROM (VALUES (1), (2), (4)) AS t(x)", result: "1.5555555555555556" },
        Example {
            query: "SELECT var_pop(CAST(x AS double precision)) FROM (VALUES ('1e15'), ('1000000000000002')) AS t(x)",
            result: "1",
        },
    ],
    implementation: Implementation::Aggregate(|| make(Moment::VarPop, &["var_population"])),
};

/// `var_samp`.
pub static VAR_SAMP: FunctionDef = FunctionDef {
    name: "var_samp",
    forms: &[
        "var_samp(smallint | integer | bigint | numeric) → numeric",
        "var_samp(real | double precision) → double precision",
    ],
    text: "The sample variance of the values that are not NULL; NULL if there are fewer than two. `variance` is the same.",
    examples: &[
        Example { query: "SELECT var_samp(x) FROM (VALUES (1), (2), (3)) AS t(x)", result: "1.00000000000000000000" },
        Example { query: "SELECT var_samp(x) FROM (VALUES (1)) AS t(x)", result: "NULL" },
    ],
    implementation: Implementation::Aggregate(|| make(Moment::VarSamp, VARIANCE_NAMES)),
};

/// `variance`.
pub static VARIANCE: FunctionDef = FunctionDef {
    name: "variance",
    forms: &[
        "variance(smallint | integer | bigint | numeric) → numeric",
        "variance(real | double precision) → double precision",
    ],
    text: "The sample variance of the values that are not NULL. `var_samp` is the same.",
    examples: &[Example {
        query: "SELECT variance(x) FROM (VALUES (1), (2), (3)) AS t(x)",
        result: "1.00000000000000000000",
    }],
    implementation: Implementation::Aggregate(|| make(Moment::VarSamp, VARIANCE_NAMES)),
};

/// `stddev_pop`.
pub static STDDEV_POP: FunctionDef = FunctionDef {
    name: "stddev_pop",
    forms: &[
        "stddev_pop(smallint | integer | bigint | numeric) → numeric",
        "stddev_pop(real | double precision) → double precision",
    ],
    text: "The population standard deviation: the square root of `var_pop`.",
    examples: &[Example {
        query: "SELECT stddev_pop(x) FROM (VALUES (1), (2), (4)) AS t(x)",
        result: "1.2472191289246471",
    }],
    implementation: Implementation::Aggregate(|| make(Moment::StddevPop, &[])),
};

/// `stddev_samp`.
pub static STDDEV_SAMP: FunctionDef = FunctionDef {
    name: "stddev_samp",
    forms: &[
        "stddev_samp(smallint | integer | bigint | numeric) → numeric",
        "stddev_samp(real | double precision) → double precision",
    ],
    text: "The sample standard deviation: the square root of `var_samp`. `stddev` is the same.",
    examples: &[Example {
        query: "SELECT stddev_samp(x) FROM (VALUES (1), (2), (3)) AS t(x)",
        result: "1.00000000000000000000",
    }],
    implementation: Implementation::Aggregate(|| make(Moment::StddevSamp, DEVIATION_NAMES)),
};

/// `stddev`.
pub static STDDEV: FunctionDef = FunctionDef {
    name: "stddev",
    forms: &[
        "stddev(smallint | integer | bigint | numeric) → numeric",
        "stddev(real | double precision) → double precision",
    ],
    text: "The sample standard deviation. `stddev_samp` is the same.",
    examples: &[Example {
        query: "SELECT stddev(CAST(x AS double precision)) FROM (VALUES (1), (2), (3)) AS t(x)",
        result: "1",
    }],
    implementation: Implementation::Aggregate(|| make(Moment::StddevSamp, DEVIATION_NAMES)),
};

/// Other names of `var_samp`. Under every name it is the same function, so that two calls of it are one.
const VARIANCE_NAMES: &[&str] = &["variance", "var", "var_sample"];

/// Other names of `stddev_samp`.
const DEVIATION_NAMES: &[&str] = &["stddev"];

fn make(moment: Moment, aliases: &[&str]) -> AggregateUDF {
    AggregateUDF::from(InvertibleFunction::new(Invertible::Moment(moment), aliases))
}
