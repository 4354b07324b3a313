//! Parse and evaluation errors.

use crate::{DEPTH_MAX, ITERATIONS_MAX, OUTPUT_BYTES_MAX, STEPS_MAX, WORK_BYTES_MAX};

/// A syntax error. Messages contain parts of the expression, never data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("expression is longer than {0} characters")]
    TooLong(usize),
    #[error("expression is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("variable path has more than 64 members")]
    TooManyLookups,
    #[error("expression has `{{{{` without `}}}}`")]
    Unclosed,
    #[error("tag has `{{%` without `%}}`")]
    UnclosedTag,
    #[error("tag `{0}` is not supported")]
    UnsupportedTag(String),
    #[error("tag `{0}` has no end tag")]
    NoEnd(&'static str),
    #[error("tag `{0}` is not allowed here")]
    MisplacedTag(&'static str),
    #[error("tag `{0}` has invalid syntax")]
    BadTag(&'static str),
    #[error("expression must start with a value")]
    NoValue,
    #[error("filter name is missing after `|`")]
    NoFilter,
    #[error("unknown filter `{0}`")]
    UnknownFilter(String),
    #[error(
        "filter `{0}` is random and is not allowed in fingerprint and search index expressions"
    )]
    RandomFilter(&'static str),
    #[error("filter `{filter}` takes {expected}")]
    ArgumentCount {
        filter: &'static str,
        expected: &'static str,
    },
    #[error("filter `{0}` has invalid arguments")]
    BadArgument(&'static str),
    #[error("filter `{0}` has an invalid JSON path")]
    BadPath(&'static str),
    #[error("filter `{0}` must be the last filter")]
    NotLast(&'static str),
    #[error("filter `{0}` must be followed by `to_base64` or `to_base16`")]
    NotEncoded(&'static str),
    #[error("id must not contain a brace")]
    BadReference,
    #[error("`{0}` is not available here")]
    UnavailableReference(&'static str),
}

/// An error during evaluation. Messages contain the name of the filter, never data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    #[error("filter `{0}` requires text, a number or a boolean")]
    NotText(&'static str),
    #[error("filter `{0}` requires a list")]
    NotList(&'static str),
    #[error("filter `{0}` requires a number")]
    NotNumber(&'static str),
    #[error("filter `{0}` requires true or false")]
    NotBoolean(&'static str),
    #[error("filter `{0}` requires a value")]
    NoInput(&'static str),
    #[error("filter `{0}` requires an expiration month and an expiration year")]
    NoExpiry(&'static str),
    #[error("filter `{0}` requires correctly encoded text")]
    BadEncoding(&'static str),
    #[error("filter `{0}` has an argument of the wrong type")]
    BadArgument(&'static str),
    #[error("filter `{0}` has an invalid JSON path")]
    BadPath(&'static str),
    #[error("filter `{0}` has a JSON path with more than one match")]
    ManyMatches(&'static str),
    #[error("filter `{0}` requires a value longer than the part it reveals")]
    TooShort(&'static str),
    #[error("filter `{0}` divides by zero")]
    DivisionByZero(&'static str),
    #[error("filter `{0}` has a number that is too large")]
    NumberTooLarge(&'static str),
    #[error("filter `{0}` is not available here")]
    Unavailable(&'static str),
    #[error("values of different types cannot be compared")]
    NotComparable,
    #[error("`for` exceeds {ITERATIONS_MAX} iterations")]
    TooManyIterations,
    #[error("value is empty")]
    Empty,
    #[error("reference has no value")]
    Unresolved,
    #[error("result is larger than {OUTPUT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("expression exceeds {STEPS_MAX} steps")]
    TooManySteps,
    #[error("filters process more than {WORK_BYTES_MAX} bytes")]
    TooMuchWork,
}
