//! Parses and evaluates expressions over JSON values; no I/O, no clock, no randomness of its own.
//!
//! A [`Template`] is text with `{{ … }}` outputs and `{% … %}` tags, a [`Mask`] is JSON with
//! templates in its strings, and a [`Document`] is JSON with references to tokens in its strings.
//! Each is parsed once, when it is stored or requested, and cached in a [`ParseCache`].
//!
//! ```
//! use cloakroom_expressions::{Context, Scope, Template};
//! use serde_json::json;
//!
//! let data = json!({ "number": "4242-4242-4242-4242", "month": 12 });
//! let variables = [("data", &data)];
//! let evaluate = |text| {
//!     let template = Template::parse(Context::Mask, text).unwrap();
//!     template.evaluate(&Scope::of(&variables)).unwrap()
//! };
//!
//! assert_eq!(evaluate("{{ data.number | reveal_last: 4 }}"), "XXXX-XXXX-XXXX-4242");
//! assert_eq!(evaluate("{{ data.month }}"), 12);
//! assert_eq!(evaluate("month {{ data.month }}"), "month 12");
//! ```

mod budget;
mod cache;
mod condition;
mod context;
mod cursor;
mod document;
mod error;
mod filters;
mod json_path;
mod mask;
mod node;
mod number;
mod output;
mod piece;
mod render;
mod scope;
mod tag;
mod template;
mod variable;

pub use cache::ParseCache;
pub use context::{CONFIGURATION, Context};
pub use document::{
    Document, DocumentError, Insertion, Reference, ReferenceKind, TextPiece, text_pieces,
};
pub use error::{EvaluationError, ParseError};
pub use mask::{Mask, MaskError};
pub use scope::{Hmac, HmacAlgorithm, Random, Scope, Sources};
pub use template::Template;

/// Maximum length of a template in any context, in characters.
pub const TEXT_CHARACTERS_MAX: usize = 4000;

/// Maximum nesting of masks, tags, JSON paths and variables.
pub const DEPTH_MAX: usize = 16;

/// Maximum iterations of one `for`.
pub const ITERATIONS_MAX: usize = 1000;

/// Maximum number of nodes and filters evaluated for one template, mask or document.
pub const STEPS_MAX: usize = 10_000;

/// Maximum size of the result of a template or mask.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of bytes that the filters of one template, mask or document may process.
pub const WORK_BYTES_MAX: usize = 1024 * 1024;
