//! What can be wrong with an expression, and what can go wrong with its value.

use crate::{DEPTH_MAX, ITERATIONS_MAX, OUTPUT_BYTES_MAX, STEPS_MAX, WORK_BYTES_MAX};

/// Why a text is no template. Names parts of the expression, never data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("expression is longer than {0} characters")]
    TooLong(usize),
    #[error("expression is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("variable goes through more than 64 members")]
    TooManyLookups,
    #[error("expression opens with `{{{{` and does not close with `}}}}`")]
    Unclosed,
    #[error("tag opens with `{{%` and does not close with `%}}`")]
    UnclosedTag,
    #[error("tag `{0}` is not supported")]
    UnsupportedTag(String),
    #[error("tag `{0}` has no end")]
    NoEnd(&'static str),
    #[error("tag `{0}` stands where it does not belong")]
    MisplacedTag(&'static str),
    #[error("tag `{0}` is not written as it should be")]
    BadTag(&'static str),
    #[error("expression has no value between its braces")]
    NoValue,
    #[error("filter name missing after `|`")]
    NoFilter,
    #[error("unknown filter `{0}`")]
    UnknownFilter(String),
    #[error("filter `{0}` has a different result every time, which makes no sense here")]
    RandomFilter(&'static str),
    #[error("filter `{filter}` takes {expected}")]
    ArgumentCount {
        filter: &'static str,
        expected: &'static str,
    },
    #[error("filter `{0}` is followed by something that is not an argument")]
    BadArgument(&'static str),
    #[error("filter `{0}` is given a path that is not a JSON path")]
    BadPath(&'static str),
    #[error("filter `{0}` must be the last one")]
    NotLast(&'static str),
    #[error("filter `{0}` must be followed by `to_base64` or `to_base16`")]
    NotEncoded(&'static str),
    #[error("id between the braces holds a brace")]
    BadReference,
    #[error("`{0}` is not available here")]
    UnavailableReference(&'static str),
}

/// Why a template has no value for some data. Names the filter, never the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    #[error("filter `{0}` works on text, numbers and booleans only")]
    NotText(&'static str),
    #[error("filter `{0}` works on lists only")]
    NotList(&'static str),
    #[error("filter `{0}` works on numbers only")]
    NotNumber(&'static str),
    #[error("filter `{0}` needs true or false")]
    NotBoolean(&'static str),
    #[error("filter `{0}` needs a value")]
    NoInput(&'static str),
    #[error("filter `{0}` needs an expiration month and an expiration year")]
    NoExpiry(&'static str),
    #[error("filter `{0}` is given text that is not encoded as it should be")]
    BadEncoding(&'static str),
    #[error("filter `{0}` has an argument of the wrong type")]
    BadArgument(&'static str),
    #[error("filter `{0}` is given a path that is not a JSON path")]
    BadPath(&'static str),
    #[error("filter `{0}` is given a path with more than one match")]
    ManyMatches(&'static str),
    #[error("filter `{0}` reveals more than the value has")]
    TooShort(&'static str),
    #[error("filter `{0}` divides by zero")]
    DivisionByZero(&'static str),
    #[error("filter `{0}` meets a number that is too large")]
    NumberTooLarge(&'static str),
    #[error("filter `{0}` is not available here")]
    Unavailable(&'static str),
    #[error("values of different types have no order")]
    NotComparable,
    #[error("`for` goes around more than {ITERATIONS_MAX} times")]
    TooManyIterations,
    #[error("value is empty")]
    Empty,
    #[error("reference has no value")]
    Unresolved,
    #[error("result is larger than {OUTPUT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("expression takes more than {STEPS_MAX} steps")]
    TooManySteps,
    #[error("filters look at more than {WORK_BYTES_MAX} bytes")]
    TooMuchWork,
}
