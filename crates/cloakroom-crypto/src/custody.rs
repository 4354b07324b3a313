//! Custody: the one seam through which a root key kept elsewhere may wrap our keys.

use crate::{Error, Key, Purpose, RootKek, Sensitive, WrapContext, Wraps, equal_in_constant_time};

/// Ties a key in custody to its row, whatever the custodian's own wrapping authenticates.
///
/// A keyed digest of the context under the key itself: without the key nobody can make the
/// binding of another row. It is stored in clear beside the custodian's bytes.
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

/// For root-key providers only, and only for keys that a root key wraps:
///
/// ```compile_fail,E0599
/// cloakroom_crypto::Key::<cloakroom_crypto::Data>::generate().expose_for_custody();
/// ```
impl<P: Purpose> Key<P>
where
    RootKek: Wraps<P>,
{
    /// The raw key, for a device or service that wraps it under a root key we never see.
    pub fn expose_for_custody(&self) -> Sensitive<Vec<u8>> {
        Sensitive::new(self.secret().to_vec())
    }

    /// To be stored with what the custodian returned, and given back to [`Key::from_custody`].
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

    /// Takes back a key that the custodian unwrapped, if it belongs to `context`.
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
    use crate::{Audit, Control, TenantKek};

    const CONTEXT: WrapContext<'static> = WrapContext {
        environment: "test",
        tenant: Some([1; 16]),
        version: 3,
    };

    #[test]
    fn a_key_returns_from_custody() {
        let key = Key::<TenantKek>::generate();
        let (raw, binding) = (key.expose_for_custody(), key.custody_binding(&CONTEXT));

        let back = Key::<TenantKek>::from_custody(&raw, &CONTEXT, &binding).unwrap();

        assert!(back.secret() == key.secret());
    }

    #[test]
    fn a_key_in_custody_belongs_to_one_row() {
        let key = Key::<Control>::generate();
        let (raw, binding) = (key.expose_for_custody(), key.custody_binding(&CONTEXT));

        let elsewhere = [
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
        for context in elsewhere {
            let result = Key::<Control>::from_custody(&raw, &context, &binding);
            assert_eq!(result.err(), Some(Error::Integrity), "{context:?}");
        }
        let other_purpose = Key::<Audit>::from_custody(&raw, &CONTEXT, &binding);
        assert_eq!(other_purpose.err(), Some(Error::Integrity));
        let other_key = Sensitive::new(vec![0; 32]);
        let result = Key::<Control>::from_custody(&other_key, &CONTEXT, &binding);
        assert_eq!(result.err(), Some(Error::Integrity));
        let short = Sensitive::new(vec![0; 31]);
        let result = Key::<Control>::from_custody(&short, &CONTEXT, &binding);
        assert_eq!(result.err(), Some(Error::Integrity));
    }
}
