//! Custody: lets an external KMS or HSM hold the root key and wrap our keys.

use crate::{Error, Key, Purpose, RootKek, Sensitive, WrapContext, Wraps, equal_in_constant_time};

/// Binds an externally wrapped key to its row, independent of what the external wrapping authenticates.
///
/// A digest of the context keyed with the key itself: computing the binding of another row requires
/// the key. It is stored in clear beside the wrapped key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustodyBinding([u8; 32]);

impl CustodyBinding {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for CustodyBinding {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// For root key providers only, and only for keys that a root key wraps:
///
/// ```compile_fail,E0599
/// cloakroom_crypto::Key::<cloakroom_crypto::Data>::generate().expose_for_custody();
/// ```
impl<P: Purpose> Key<P>
where
    RootKek: Wraps<P>,
{
    /// The raw key, for an HSM or KMS that wraps it under a root key outside of this process.
    pub fn expose_for_custody(&self) -> Sensitive<Vec<u8>> {
        Sensitive::new(self.secret().to_vec())
    }

    /// The binding to store with the wrapped key; [`Key::from_custody`] verifies it.
    pub fn custody_binding(&self, context: &WrapContext<'_>) -> CustodyBinding {
        let fields = [
            b"custody.v1",
            context.environment.as_bytes(),
            context.tenant_bytes(),
            P::PURPOSE.name().as_bytes(),
            &context.version.to_be_bytes(),
        ];
        CustodyBinding(self.digest(fields))
    }

    /// Imports a key that the custodian unwrapped; verifies that it belongs to `context`.
    pub fn from_custody(
        raw: &Sensitive<Vec<u8>>,
        context: &WrapContext<'_>,
        binding: &CustodyBinding,
    ) -> Result<Self, Error> {
        let key = Self::from_slice(raw.expose()).map_err(|_| Error::Integrity)?;
        let expected = key.custody_binding(context);
        if !equal_in_constant_time(&expected.0, &binding.0) {
            return Err(Error::Integrity);
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuditAuthority, Control, TenantKek};

    const CONTEXT: WrapContext<'static> = WrapContext {
        environment: "test",
        tenant: Some([1; 16]),
        version: 3,
    };

    #[test]
    fn a_key_survives_a_custody_round_trip() {
        let key = Key::<TenantKek>::generate();
        let (raw, binding) = (key.expose_for_custody(), key.custody_binding(&CONTEXT));

        let imported = Key::<TenantKek>::from_custody(&raw, &CONTEXT, &binding).unwrap();

        assert!(imported.secret() == key.secret());
    }

    #[test]
    fn a_key_in_custody_is_bound_to_its_row() {
        let key = Key::<Control>::generate();
        let (raw, binding) = (key.expose_for_custody(), key.custody_binding(&CONTEXT));

        let other_contexts = [
            WrapContext {
                environment: "prod",
                ..CONTEXT
            },
            WrapContext {
                tenant: Some([2; 16]),
                ..CONTEXT
            },
            WrapContext {
                tenant: None,
                ..CONTEXT
            },
            WrapContext {
                version: 4,
                ..CONTEXT
            },
        ];
        for context in other_contexts {
            let result = Key::<Control>::from_custody(&raw, &context, &binding);
            assert_eq!(result.err(), Some(Error::Integrity), "{context:?}");
        }
        let other_purpose = Key::<AuditAuthority>::from_custody(&raw, &CONTEXT, &binding);
        assert_eq!(other_purpose.err(), Some(Error::Integrity));
        let other_key = Sensitive::new(vec![0; 32]);
        let result = Key::<Control>::from_custody(&other_key, &CONTEXT, &binding);
        assert_eq!(result.err(), Some(Error::Integrity));
        let short = Sensitive::new(vec![0; 31]);
        let result = Key::<Control>::from_custody(&short, &CONTEXT, &binding);
        assert_eq!(result.err(), Some(Error::Integrity));
    }
}
