//! The context of a wrapped key, as providers authenticate it.

use cloakroom_crypto::{Purpose, WrapContext};

use crate::Failure;

/// The context of a wrapped key, in the forms that providers authenticate. It appears in their logs.
pub(crate) struct ProviderContext {
    /// As bytes, for associated data.
    #[cfg_attr(
        not(any(feature = "pkcs11", feature = "transit")),
        expect(dead_code, reason = "read by these providers only")
    )]
    pub(crate) aad: Vec<u8>,
    /// As names and values, for an encryption context.
    #[cfg_attr(
        not(feature = "aws-kms"),
        expect(dead_code, reason = "read by this provider only")
    )]
    pub(crate) fields: [(&'static str, String); 5],
}

impl ProviderContext {
    pub(crate) fn new<P: Purpose>(context: &WrapContext<'_>) -> Result<Self, Failure> {
        let tenant = match context.tenant {
            Some(tenant) => uuid::Uuid::from_bytes(tenant).to_string(),
            None => "none".to_owned(),
        };
        Ok(Self {
            aad: context.custody_aad::<P>().map_err(|_| Failure::Integrity)?,
            fields: [
                ("cloakroom", "v2".to_owned()),
                ("environment", context.environment.to_owned()),
                ("tenant", tenant),
                ("purpose", P::PURPOSE.name().to_owned()),
                ("version", context.version.to_string()),
            ],
        })
    }
}
