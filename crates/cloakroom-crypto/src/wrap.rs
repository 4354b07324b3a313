//! Wrapping: a key sealed under its parent, bound to the row it is kept in.

use crate::key::CHECK_VALUE_BYTES;
use crate::primitives::{self, MessageKey, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use crate::{CheckValue, Error, KEY_BYTES, Key, Purpose, Sensitive, Wraps, fields, random};

const FORMAT: u8 = 1;
const ALGORITHM: u8 = 1;

/// Where a wrapped key is kept; its purpose comes from its type.
#[derive(Debug, Clone, Copy)]
pub struct WrapContext<'a> {
    pub environment: &'a str,
    /// None for the keys of the whole installation.
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

    /// No tenant is an empty field, which no tenant id can be.
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

/// Unwraps what [`wrap`] made for the same place; anything else is [`Error::Integrity`].
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
mod tests {
    use super::*;
    use crate::{Data, Reply, RootKek, TenantKek};

    const CONTEXT: WrapContext<'static> = WrapContext {
        environment: "test",
        tenant: Some([1; 16]),
        version: 3,
    };

    #[test]
    fn a_wrapped_key_belongs_to_one_row() {
        let (kek, key) = (Key::<TenantKek>::generate(), Key::<Data>::generate());
        let wrapped = wrap(&kek, &key, &CONTEXT).unwrap();

        let back: Key<Data> = unwrap(&kek, &CONTEXT, &wrapped).unwrap();
        assert!(back.secret() == key.secret());
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
            let result = unwrap::<_, Data>(&kek, &context, &wrapped);
            assert_eq!(result.err(), Some(Error::Integrity), "{context:?}");
        }
        let other_purpose = unwrap::<_, Reply>(&kek, &CONTEXT, &wrapped);
        assert_eq!(other_purpose.err(), Some(Error::Integrity));
        let other_kek = unwrap::<_, Data>(&Key::<TenantKek>::generate(), &CONTEXT, &wrapped);
        assert_eq!(other_kek.err(), Some(Error::Integrity));
    }

    #[test]
    fn no_bit_and_no_length_of_a_wrapped_key_may_change() {
        let (kek, key) = (Key::<RootKek>::generate(), Key::<TenantKek>::generate());
        let wrapped = wrap(&kek, &key, &CONTEXT).unwrap();
        let refused = |bytes: &[u8]| {
            unwrap::<_, TenantKek>(&kek, &CONTEXT, bytes).err() == Some(Error::Integrity)
        };

        assert_eq!(wrapped.len(), 86);
        for bit in 0..wrapped.len() * 8 {
            let mut flipped = wrapped.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(refused(&flipped), "{bit}");
        }
        for length in 0..wrapped.len() {
            assert!(refused(&wrapped[..length]), "{length}");
        }
        assert!(refused(&[&wrapped[..], &[0]].concat()));
    }

    #[test]
    fn a_key_other_than_its_check_value_says_is_refused() {
        let (kek, key) = (Key::<TenantKek>::generate(), Key::<Data>::generate());
        let wrapped_as = |check_value: CheckValue| {
            let wrapping_key = primitives::derive(kek.secret(), &[0; 16], b"wrap.v1");
            let aad = CONTEXT.aad("data", check_value).unwrap();
            let mut sealed = key.secret().to_vec();
            let message_key = MessageKey::new(&wrapping_key, [0; 12]).unwrap();
            let tag = message_key.seal(&aad, &mut sealed).unwrap();
            let head = [&[1, 1], &check_value.as_bytes()[..], &[0; 28]].concat();
            [&head, &sealed, tag.as_ref()].concat()
        };

        let honest = unwrap::<_, Data>(&kek, &CONTEXT, &wrapped_as(key.check_value()));
        let mistaken = unwrap::<_, Data>(&kek, &CONTEXT, &wrapped_as(CheckValue::from([0; 8])));

        assert!(honest.is_ok());
        assert_eq!(mistaken.err(), Some(Error::Integrity));
    }
}
