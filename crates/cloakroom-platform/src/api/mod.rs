//! Shared HTTP types: errors, request bodies, responses, pagination, timestamps.

mod answer;
mod base_url;
mod body;
mod client_addr;
mod error;
mod error_catalog;
mod error_responses;
mod expiry;
mod field_error;
mod json_limits;
mod merge_patch;
mod numbered_page;
mod object;
mod path;
mod query;
mod timestamp;

pub use answer::{Answer, SharedBody, StreamedBody};
pub use base_url::{BaseUrl, HasHttpConfig};
pub use body::{
    BodyLimits, JsonBody, MergePatchBody, Received, parse_json, read_json, receive_body,
};
pub use client_addr::{ClientAddr, PeerCertificates, network_address, network_of};
pub use error::{ApiError, Problem, complete_problem};
pub use error_catalog::{CATALOG_PATH, ERROR_TYPES, ErrorType, error_reference, find_error_type};
pub use error_responses::{
    AccessErrors, BodyErrors, KeyErrors, QueryErrors, ReadErrors, WriteErrors,
};
pub use expiry::{Expiry, RULE as EXPIRY_RULE};
pub use field_error::FieldError;
pub use merge_patch::merge_patch;
pub use numbered_page::{NumberedPage, NumberedPageBody, page_size};
pub use object::{Object, optional_object};
pub use path::{PathId, PathIds, Route, encode_segment};
pub use query::Query;
pub use timestamp::{format_at_offset, format_utc};
