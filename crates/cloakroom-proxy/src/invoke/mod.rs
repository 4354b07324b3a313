//! Invoking a proxy: `ANY /proxy` and everything below it.
//!
//! `pipeline` has the steps in their order: `target` selects the proxy and checks the caller, `body` receives the body,
//! `replace` loads the values of expressions (`template`, `values`), `pipeline` records their use in the audit log,
//! `replace` evaluates the expressions, `pipeline` sends the request, and `response` returns what the destination responded.

mod api;
mod body;
mod call;
mod content;
mod encrypted;
mod error;
mod event;
mod headers;
mod outgoing;
mod pairs;
mod pipeline;
mod replace;
mod response;
mod scanner;
mod target;
mod template;
mod transform;
mod values;
mod withheld;
mod xml;

pub use self::api::{open_proxy_key, reject, routes};
pub use self::call::InvocationPath;
use self::error::Error;
pub use self::response::DESTINATION_STATUS;
