//! Web elements: the client script and the frames that official browser packages load from the vault.
//!
//! Their source is in `web/elements`. The built files are compiled in, so the served bytes are those of the binary.
//!
//! Reading order: `api` has the routes, `page` the frames and their policy, `asset` the scripts.

mod api;
mod asset;
mod page;

pub use self::api::routes;
