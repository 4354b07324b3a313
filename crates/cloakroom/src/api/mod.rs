//! The HTTP vocabulary that all rooms share: failures, bodies, answers, times.

mod answer;
mod base_url;
mod body;
mod broken;
mod error;
mod json_limits;
mod path;
mod timestamp;

pub use answer::Answer;
pub use base_url::BaseUrl;
pub use body::{BodyLimits, JsonBody};
pub use broken::Broken;
pub use error::{ApiError, Problem};
pub use path::PathId;
pub use timestamp::{format_at_offset, format_utc};
