//! Parses and evaluates expressions over JSON values; no I/O, no clock, no chance.
//!
//! A [`Template`] is text with `{{ … }}` outputs, a [`Mask`] is JSON with templates in its strings.
//! Both are parsed once, when they are stored, and evaluated on every read.
//!
//! ```
//! use cloakroom_expressions::Template;
//! use serde_json::json;
//!
//! let data = json!({ "number": "4242-4242-4242-4242", "month": 12 });
//! let evaluate = |text| Template::parse(text).unwrap().evaluate(&data).unwrap();
//!
//! assert_eq!(evaluate("{{ data.number | reveal_last: 4 }}"), "XXXX-XXXX-XXXX-4242");
//! assert_eq!(evaluate("{{ data.month }}"), 12);
//! assert_eq!(evaluate("month {{ data.month }}"), "month 12");
//! ```

mod cursor;
mod filters;
mod mask;
mod output;
mod size;
mod template;
mod variable;

pub use mask::{Mask, MaskError};
pub use template::Template;

/// The longest text of one template, in characters.
pub const TEXT_CHARACTERS_MAX: usize = 4000;

/// How deep masks and variables inside variables may be nested.
pub const DEPTH_MAX: usize = 16;

/// The largest result, of a template or of a whole mask.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// How many bytes the filters of a template, or of a whole mask, may look at altogether.
pub const WORK_BYTES_MAX: usize = 1024 * 1024;

/// Why a text is no template. Names parts of the expression, never data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("expression is longer than {TEXT_CHARACTERS_MAX} characters")]
    TooLong,
    #[error("expression is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("expression opens with `{{{{` and does not close with `}}}}`")]
    Unclosed,
    #[error("tag `{0}` is not supported")]
    UnsupportedTag(String),
    #[error("expression has no value between its braces")]
    NoValue,
    #[error("filter name missing after `|`")]
    NoFilter,
    #[error("unknown filter `{0}`")]
    UnknownFilter(String),
    #[error("filter `{filter}` takes {expected}")]
    ArgumentCount {
        filter: &'static str,
        expected: &'static str,
    },
    #[error("filter `{0}` is followed by something that is not an argument")]
    BadArgument(&'static str),
    #[error("filter `{0}` must be the last one")]
    NotLast(&'static str),
}

/// Why a template has no value for some data. Names the filter, never the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    #[error("filter `{0}` works on text, numbers and booleans only")]
    NotText(&'static str),
    #[error("filter `{0}` has an argument of the wrong type")]
    BadArgument(&'static str),
    #[error("result is larger than {OUTPUT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("filters look at more than {WORK_BYTES_MAX} bytes")]
    TooMuchWork,
}
