//! The catalog of connection formulas: what a connection to each payment processor asks for and can do.
//!
//! Each formula is a file in `formulas/` of the repository. The build script checks the files and turns
//! them into statics, so nothing is parsed, and nothing can fail, when a program runs.
//!
//! ```
//! let stripe = cloakroom_formulas::find("stripe-card").unwrap();
//! assert!(stripe.supported_currencies.contains(&"EUR"));
//! ```

mod filter;
mod vocabulary;

// What the build script checks files with, for its tests.
#[cfg(test)]
#[expect(dead_code, reason = "the build script reads what is only checked here")]
mod document;

use serde::Serialize;

pub use self::filter::{Country, Currency, Filter, NoCode};
pub use self::vocabulary::{Feature, Features, Format, Method, UnknownWord};

/// What a connection to one payment processor asks for and can do.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Formula {
    /// The processor and the method, such as `stripe-card`.
    pub id: &'static str,
    pub display_name: &'static str,
    pub method: Method,
    /// The configuration values of a connection.
    pub fields: &'static [Field],
    /// ISO 4217, sorted.
    pub supported_currencies: &'static [&'static str],
    /// ISO 3166-1 alpha-2, sorted.
    pub supported_countries: &'static [&'static str],
    pub supported_features: Features,
}

/// A configuration value of a connection.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    pub key: &'static str,
    pub display_name: &'static str,
    pub required: bool,
    pub format: Format,
    /// Whether it is a credential, which nobody is shown again.
    pub secret: bool,
}

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// The formula with this id.
pub fn find(id: &str) -> Option<&'static Formula> {
    let place = FORMULAS.binary_search_by(|formula| formula.id.cmp(id));
    place.ok().map(|place| &FORMULAS[place])
}
