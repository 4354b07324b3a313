//! Custody: keys that a root key wraps, inside this process or in an HSM or KMS.

use crate::fields::length_prefixed;
use crate::{Error, Key, Purpose, RootKek, Sensitive, WrapContext, Wraps, equal_in_constant_time};

const FORMAT: u8 = 2;
const BINDING_BYTES: usize = 32;

/// Names a root key: the number of its provider, and its id there.
///
/// Every wrapped key carries it, so that a node with several root keys selects one instead of trying each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RootId {
    provider: u8,
    name: String,
}

impl RootId {
    /// Fails if the name is empty or longer than 65535 bytes.
    pub fn new(provider: u8, name: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        match u16::try_from(name.len()) {
            Ok(1..) => Ok(Self { provider, name }),
            Ok(0) | Err(_) => Err(Error::ContextTooLong),
        }
    }

    pub fn provider(&self) -> u8 {
        self.provider
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A key wrapped by a root key, as stored: format 2 of wrapped keys.
pub struct RootWrapped<'a> {
    pub root: RootId,
    pub binding: CustodyBinding,
    /// In the provider's own format.
    pub ciphertext: &'a [u8],
}

impl<'a> RootWrapped<'a> {
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let name = length_prefixed(&[self.root.name.as_bytes()])?;
        let head = [FORMAT, self.root.provider];
        Ok([&head[..], &name, &self.binding.0, self.ciphertext].concat())
    }

    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::parse_fields(bytes).ok_or(Error::Integrity)
    }

    fn parse_fields(bytes: &'a [u8]) -> Option<Self> {
        let (&[format, provider], rest) = bytes.split_first_chunk()?;
        let (&length, rest) = rest.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_at_checked(u16::from_be_bytes(length).into())?;
        let (&binding, ciphertext) = rest.split_first_chunk::<BINDING_BYTES>()?;
        let name = std::str::from_utf8(name).ok()?;
        (format == FORMAT).then_some(Self {
            root: RootId::new(provider, name).ok()?,
            binding: CustodyBinding(binding),
            ciphertext,
        })
    }
}

/// Binds a wrapped key to its row and to its root key, independent of what the provider authenticates.
///
/// A digest of the context keyed with the key itself: computing the binding of another row requires
/// the key. It is stored in clear beside the ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustodyBinding([u8; BINDING_BYTES]);

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

impl WrapContext<'_> {
    /// The context as associated data of an external provider: the row that stores the key. It contains no secret.
    pub fn custody_aad<P: Purpose>(&self) -> Result<Vec<u8>, Error> {
        length_prefixed(&[
            b"cloakroom.v2",
            self.environment.as_bytes(),
            self.tenant_bytes(),
            P::PURPOSE.name().as_bytes(),
            &self.version.to_be_bytes(),
        ])
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
    pub fn custody_binding(&self, context: &WrapContext<'_>, root: &RootId) -> CustodyBinding {
        let fields = [
            b"custody.v2",
            context.environment.as_bytes(),
            context.tenant_bytes(),
            P::PURPOSE.name().as_bytes(),
            &context.version.to_be_bytes(),
            &[root.provider],
            root.name.as_bytes(),
        ];
        CustodyBinding(self.digest(fields))
    }

    /// Imports a key that the provider unwrapped; verifies that it belongs to `context`.
    pub fn from_custody(
        raw: &Sensitive<Vec<u8>>,
        context: &WrapContext<'_>,
        wrapped: &RootWrapped<'_>,
    ) -> Result<Self, Error> {
        Self::from_slice(raw.expose())
            .map_err(|_| Error::Integrity)?
            .verify_binding(context, wrapped)
    }

    /// Returns the key if the binding of `wrapped` matches it.
    pub fn verify_binding(
        self,
        context: &WrapContext<'_>,
        wrapped: &RootWrapped<'_>,
    ) -> Result<Self, Error> {
        let expected = self.custody_binding(context, &wrapped.root);
        match equal_in_constant_time(&expected.0, &wrapped.binding.0) {
            true => Ok(self),
            false => Err(Error::Integrity),
        }
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

    fn root() -> RootId {
        RootId::new(2, "vault/root").unwrap()
    }

    fn wrapped_with(binding: CustodyBinding) -> RootWrapped<'static> {
        RootWrapped {
            root: root(),
            binding,
            ciphertext: b"opaque",
        }
    }

    #[test]
    fn a_key_survives_a_custody_round_trip() {
        let key = Key::<TenantKek>::generate();
        let raw = key.expose_for_custody();
        let stored = wrapped_with(key.custody_binding(&CONTEXT, &root()))
            .to_bytes()
            .unwrap();

        let parsed = RootWrapped::parse(&stored).unwrap();
        let imported = Key::<TenantKek>::from_custody(&raw, &CONTEXT, &parsed).unwrap();

        assert_eq!(
            (parsed.root.provider(), parsed.root.name()),
            (2, "vault/root")
        );
        assert_eq!(parsed.ciphertext, b"opaque");
        assert!(imported.secret() == key.secret());
    }

    #[test]
    fn a_key_in_custody_is_bound_to_its_row_and_root_key() {
        let key = Key::<Control>::generate();
        let raw = key.expose_for_custody();
        let wrapped = || wrapped_with(key.custody_binding(&CONTEXT, &root()));

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
            let result = Key::<Control>::from_custody(&raw, &context, &wrapped());
            assert_eq!(result.err(), Some(Error::Integrity), "{context:?}");
        }
        let other_purpose = Key::<AuditAuthority>::from_custody(&raw, &CONTEXT, &wrapped());
        assert_eq!(other_purpose.err(), Some(Error::Integrity));
        for root in [RootId::new(3, "vault/root"), RootId::new(2, "vault/other")] {
            let renamed = RootWrapped {
                root: root.unwrap(),
                ..wrapped()
            };
            let result = Key::<Control>::from_custody(&raw, &CONTEXT, &renamed);
            assert_eq!(result.err(), Some(Error::Integrity));
        }
        for other in [vec![0; 32], vec![0; 31]] {
            let other = Sensitive::new(other);
            let result = Key::<Control>::from_custody(&other, &CONTEXT, &wrapped());
            assert_eq!(result.err(), Some(Error::Integrity));
        }
    }

    #[test]
    fn a_truncated_or_foreign_format_is_rejected() {
        let binding = Key::<Control>::generate().custody_binding(&CONTEXT, &root());
        let bytes = wrapped_with(binding).to_bytes().unwrap();

        for length in 0..bytes.len() - b"opaque".len() {
            assert!(RootWrapped::parse(&bytes[..length]).is_err(), "{length}");
        }
        for (position, byte) in [(0, 1), (2, 0xff), (4, 0xff)] {
            let mut altered = bytes.clone();
            altered[position] = byte;
            assert!(RootWrapped::parse(&altered).is_err(), "{position}");
        }
        assert!(RootId::new(1, "").is_err());
    }
}
