//! The HTTP vocabulary that all rooms share: failures, bodies, answers, times.

mod answer;
mod base_url;
mod body;
mod broken;
mod client_addr;
mod error;
mod expiry;
mod json_limits;
mod merge_patch;
mod numbered_page;
mod object;
mod path;
mod query;
mod timestamp;

pub use answer::Answer;
pub use base_url::BaseUrl;
pub use body::{
    BodyLimits, JsonBody, MergePatchBody, Received, parse_json, read_json, receive_body,
};
pub use broken::Broken;
pub use client_addr::{ClientAddr, PeerCertificates, network_of};
pub use error::{ApiError, Problem};
pub use expiry::Expiry;
pub(crate) use expiry::RULE as EXPIRY_RULE;
pub use merge_patch::merge_patch;
pub use numbered_page::{NumberedPage, NumberedPageBody, page_size};
pub use object::Object;
pub(crate) use object::optional_object;
pub use path::{PathId, PathIds, Route, encode_segment};
pub use query::Query;
pub use timestamp::{format_at_offset, format_utc};
