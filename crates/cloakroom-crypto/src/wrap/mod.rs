//! Key wrapping: a key encrypted under its parent and bound to the row that stores it.

use crate::key::CHECK_VALUE_BYTES;
use crate::primitives::{self, MessageKey, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use crate::{CheckValue, Error, KEY_BYTES, Key, Purpose, Sensitive, Wraps, fields, random};

const FORMAT: u8 = 1;
const ALGORITHM: u8 = 1;

/// The row that stores a wrapped key. The purpose comes from the key's type.
#[derive(Debug, Clone, Copy)]
pub struct WrapContext<'a> {
    pub environment: &'a str,
    /// `None` for keys of the whole installation.
    pub tenant: Option<[u8; 16]>,
    pub version: u32,
}

impl WrapContext<'_> {
    fn aad(&self, purpose: &str, check_value: CheckValue) -> Result<Vec<u8>, Error> {
        fields::length_prefixed(&[
            b"wrap.v1",
            self.environment.as_bytes(),
            self.tenant_bytes(),
            purpose.as_bytes(),
            &[FORMAT],
            &[ALGORITHM],
            &self.version.to_be_bytes(),
            check_value.as_bytes(),
        ])
    }

    /// Empty without a tenant; a tenant id is never empty.
    pub(crate) fn tenant_bytes(&self) -> &[u8] {
        self.tenant.as_ref().map_or(&[], |tenant| tenant)
    }
}

/// Wraps `key` under its parent in the hierarchy.
///
/// ```
/// use cloakroom_crypto::{Key, RootKek, TenantKek, WrapContext, unwrap, wrap};
///
/// let (root, tenant) = (Key::<RootKek>::generate(), Key::<TenantKek>::generate());
/// let context = WrapContext { environment: "test", tenant: Some([7; 16]), version: 1 };
/// let wrapped = wrap(&root, &tenant, &context)?;
/// let back: Key<TenantKek> = unwrap(&root, &context, &wrapped)?;
/// assert_eq!(back.check_value(), tenant.check_value());
/// # Ok::<(), cloakroom_crypto::Error>(())
/// ```
///
/// Any other nesting does not compile:
///
/// ```compile_fail,E0277
/// use cloakroom_crypto::{Data, Key, RootKek, WrapContext, wrap};
/// let (root, data) = (Key::<RootKek>::generate(), Key::<Data>::generate());
/// let context = WrapContext { environment: "test", tenant: Some([7; 16]), version: 1 };
/// let _ = wrap(&root, &data, &context);
/// ```
/// ```compile_fail,E0277
/// use cloakroom_crypto::{Control, Key, TenantKek, WrapContext, wrap};
/// let (tenant, control) = (Key::<TenantKek>::generate(), Key::<Control>::generate());
/// let context = WrapContext { environment: "test", tenant: Some([7; 16]), version: 1 };
/// let _ = wrap(&tenant, &control, &context);
/// ```
pub fn wrap<K: Wraps<P>, P: Purpose>(
    kek: &Key<K>,
    key: &Key<P>,
    context: &WrapContext<'_>,
) -> Result<Vec<u8>, Error> {
    wrap_with(
        kek,
        key,
        context,
        random::random_bytes(),
        random::random_bytes(),
    )
}

/// Wraps with given salt and nonce, which only vectors may choose.
pub(crate) fn wrap_with<K: Wraps<P>, P: Purpose>(
    kek: &Key<K>,
    key: &Key<P>,
    context: &WrapContext<'_>,
    salt: [u8; SALT_BYTES],
    nonce: [u8; NONCE_BYTES],
) -> Result<Vec<u8>, Error> {
    let check_value = key.check_value();
    let aad = context.aad(P::PURPOSE.name(), check_value)?;
    let mut sealed = Sensitive::new(key.secret().to_vec());
    let tag = MessageKey::new(&primitives::derive(kek.secret(), &salt, b"wrap.v1"), nonce)
        .and_then(|wrapping_key| wrapping_key.seal(&aad, sealed.expose_mut()))
        .map_err(|_| Error::Provider)?;

    Ok([
        &[FORMAT, ALGORITHM][..],
        check_value.as_bytes(),
        &salt,
        &nonce,
        sealed.expose(),
        tag.as_ref(),
    ]
    .concat())
}

/// Unwraps a key that [`wrap`] wrapped for the same context; anything else is [`Error::Integrity`].
pub fn unwrap<K: Wraps<P>, P: Purpose>(
    kek: &Key<K>,
    context: &WrapContext<'_>,
    wrapped: &[u8],
) -> Result<Key<P>, Error> {
    let parts = Wrapped::parse(wrapped).ok_or(Error::Integrity)?;
    let aad = context
        .aad(P::PURPOSE.name(), parts.check_value)
        .map_err(|_| Error::Integrity)?;

    let mut raw = Sensitive::new(vec![0; KEY_BYTES]);
    let wrapping_key = primitives::derive(kek.secret(), &parts.salt, b"wrap.v1");
    MessageKey::new(&wrapping_key, parts.nonce)
        .and_then(|key| key.open(&aad, &parts.ciphertext, &parts.tag, raw.expose_mut()))
        .map_err(|_| Error::Integrity)?;
    let key = Key::from_slice(raw.expose()).map_err(|_| Error::Integrity)?;
    if key.check_value() != parts.check_value {
        return Err(Error::Integrity);
    }
    Ok(key)
}

struct Wrapped {
    check_value: CheckValue,
    salt: [u8; SALT_BYTES],
    nonce: [u8; NONCE_BYTES],
    ciphertext: [u8; KEY_BYTES],
    tag: [u8; TAG_BYTES],
}

impl Wrapped {
    fn parse(wrapped: &[u8]) -> Option<Self> {
        let (&head, rest) = wrapped.split_first_chunk()?;
        let (&check_value, rest) = rest.split_first_chunk::<CHECK_VALUE_BYTES>()?;
        let (&salt, rest) = rest.split_first_chunk()?;
        let (&nonce, rest) = rest.split_first_chunk()?;
        let (&ciphertext, rest) = rest.split_first_chunk()?;
        let tag = rest.try_into().ok()?;
        let check_value = CheckValue::from(check_value);
        (head == [FORMAT, ALGORITHM]).then_some(Self {
            check_value,
            salt,
            nonce,
            ciphertext,
            tag,
        })
    }
}

#[cfg(test)]
mod tests;
