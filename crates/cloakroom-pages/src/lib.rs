//! Hosted pages: what cardholders see of the vault.
//!
//! Reading order: [`checkout`] is the hosted card form, [`page`] renders every page with its headers and turns errors into
//! pages, `developers` has the start page and the catalog of errors, [`branding`] serves logo and colors of tenants, [`asset`] the stylesheet and the scripts. [`message`],
//! [`language`] and [`money`] are texts. The pages of 3-D Secure are in `cloakroom-threeds` and use these.

pub mod checkout;

pub mod branding;
pub mod page;

pub mod asset;
mod developers;
pub mod message;
pub mod money;

pub mod language;

use cloakroom_platform::storage::Statement;
use cloakroom_tokens::TokenVault;
pub use language::Language;
pub use message::Message;
pub use money::Money;
pub use page::{Page, PageContext, Summary};
use utoipa_axum::router::OpenApiRouter;

/// Routes of merchants, which require a key.
pub fn routes() -> OpenApiRouter<TokenVault> {
    checkout::routes()
}

/// Routes of cardholders' browsers, which have no key.
pub fn browser_routes() -> OpenApiRouter<TokenVault> {
    checkout::browser_routes()
        .merge(branding::routes())
        .merge(asset::routes())
        .merge(developers::routes())
}

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    checkout::STATEMENTS.iter().copied()
}
