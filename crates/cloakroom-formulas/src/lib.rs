//! The catalog of connection formulas: the configuration and the features of each payment processor.
//!
//! Each formula is a file in `formulas/` of the repository. The build script validates the files and generates
//! statics from them, so no parsing and no error is possible at run time.
//!
//! ```
//! let stripe = cloakroom_formulas::find("stripe-card").unwrap();
//! assert!(stripe.supported_currencies.contains(&"EUR"));
//! ```

mod filter;
mod vocabulary;

// The build script's validation, compiled here for its tests.
#[cfg(test)]
#[expect(dead_code, reason = "only the build script uses the parsed values")]
mod document;

use serde::Serialize;

pub use self::filter::{Country, Currency, Filter, InvalidCode};
pub use self::vocabulary::{Feature, Features, Format, Method, UnknownName};

/// The configuration and the features of a connection to one payment processor.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Formula {
    /// Processor and payment method, for example `stripe-card`.
    pub id: &'static str,
    pub display_name: &'static str,
    pub method: Method,
    /// The configuration values of a connection.
    pub fields: &'static [Field],
    /// ISO 4217 codes, sorted.
    pub supported_currencies: &'static [&'static str],
    /// ISO 3166-1 alpha-2 codes, sorted.
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
    /// Whether it is a credential, which is never shown again.
    pub secret: bool,
}

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// Finds a formula by its id.
pub fn find(id: &str) -> Option<&'static Formula> {
    let index = FORMULAS.binary_search_by(|formula| formula.id.cmp(id));
    index.ok().map(|index| &FORMULAS[index])
}
