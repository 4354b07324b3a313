//! Key purposes: marker types for the compiler, and the numbers stored in the database.

use crate::Error;

/// The purpose of a key as stored in the database. Numbers and names never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum KeyPurpose {
    RootKek = 1,
    TenantKek = 2,
    Data = 3,
    Fingerprint = 4,
    Index = 5,
    Reply = 6,
    Control = 7,
    /// Reserved: authenticated the entries of the audit log before they were signed.
    Audit = 8,
    SecurityCode = 9,
    Signing = 10,
    AuditAuthority = 11,
    Request = 12,
    SecurityCodeWrap = 13,
}

impl KeyPurpose {
    /// In the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::RootKek,
        Self::TenantKek,
        Self::Data,
        Self::Fingerprint,
        Self::Index,
        Self::Reply,
        Self::Control,
        Self::Audit,
        Self::SecurityCode,
        Self::Signing,
        Self::AuditAuthority,
        Self::Request,
        Self::SecurityCodeWrap,
    ];

    pub fn number(self) -> i16 {
        self as i16
    }

    /// The name authenticated by check values and wrapped keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::RootKek => "root_kek",
            Self::TenantKek => "tenant_kek",
            Self::Data => "data",
            Self::Fingerprint => "fingerprint",
            Self::Index => "index",
            Self::Reply => "reply",
            Self::Control => "control",
            Self::Audit => "audit",
            Self::SecurityCode => "security_code",
            Self::Signing => "signing",
            Self::AuditAuthority => "audit_authority",
            Self::Request => "request",
            Self::SecurityCodeWrap => "security_code_wrap",
        }
    }
}

impl TryFrom<i16> for KeyPurpose {
    type Error = Error;

    fn try_from(number: i16) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.number() == number)
            .ok_or(Error::UnknownPurpose)
    }
}

/// A purpose as a marker type. Sealed: other crates cannot add purposes.
pub trait Purpose: sealed::Sealed {
    const PURPOSE: KeyPurpose;
}

/// Wraps tenant, control, audit authority, security-code wrapping and signing keys.
pub struct RootKek;
/// Wraps the working keys of one tenant.
pub struct TenantKek;
/// Seals token and intent data.
pub struct Data;
/// Computes fingerprints.
pub struct Fingerprinting;
/// Computes blind index terms.
pub struct Index;
/// Seals responses stored for idempotency keys.
pub struct Reply;
/// Authenticates requests with idempotency keys.
pub struct Request;
/// Authenticates rows of tenants, applications, API keys, permissions and quotas, and events.
pub struct Control;
/// The seed of the key pair that certifies the keys with which nodes sign the audit log.
pub struct AuditAuthority;
/// Seals security codes for their short retention; never stored in a database.
pub struct SecurityCode;
/// Seals the private keys that sign what other parties verify.
pub struct Signing;
/// Wraps security-code keys, so that nodes exchange them without the root key.
pub struct SecurityCodeWrap;

macro_rules! purposes {
    ($($marker:ident => $purpose:ident),* $(,)?) => {$(
        impl sealed::Sealed for $marker {}
        impl Purpose for $marker {
            const PURPOSE: KeyPurpose = KeyPurpose::$purpose;
        }
    )*};
}

purposes! {
    RootKek => RootKek,
    TenantKek => TenantKek,
    Data => Data,
    Fingerprinting => Fingerprint,
    Index => Index,
    Reply => Reply,
    Control => Control,
    AuditAuthority => AuditAuthority,
    SecurityCode => SecurityCode,
    Signing => Signing,
    Request => Request,
    SecurityCodeWrap => SecurityCodeWrap,
}

/// The keys that a key-encrypting key may wrap.
pub trait Wraps<P: Purpose>: Purpose {}
impl Wraps<TenantKek> for RootKek {}
impl Wraps<Control> for RootKek {}
impl Wraps<AuditAuthority> for RootKek {}
impl Wraps<Signing> for RootKek {}
impl Wraps<SecurityCodeWrap> for RootKek {}
impl Wraps<SecurityCode> for SecurityCodeWrap {}
impl Wraps<Data> for TenantKek {}
impl Wraps<Fingerprinting> for TenantKek {}
impl Wraps<Index> for TenantKek {}
impl Wraps<Reply> for TenantKek {}
impl Wraps<Request> for TenantKek {}

/// Keys that seal records.
pub trait SealsRecords: Purpose {}
impl SealsRecords for Data {}
impl SealsRecords for Reply {}
impl SealsRecords for SecurityCode {}
impl SealsRecords for Signing {}

/// Keys that authenticate data stored in clear.
pub trait Authenticates: Purpose {}
impl Authenticates for Control {}
impl Authenticates for Request {}

mod sealed {
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn numbers_and_names_are_unique() {
        let names: HashSet<_> = KeyPurpose::ALL.map(KeyPurpose::name).into();
        assert_eq!(names.len(), KeyPurpose::ALL.len());
        for purpose in KeyPurpose::ALL {
            assert_eq!(KeyPurpose::try_from(purpose.number()), Ok(purpose));
        }
    }

    #[test]
    fn unknown_numbers_are_rejected() {
        for number in [i16::MIN, -1, 0, 14, i16::MAX] {
            assert_eq!(KeyPurpose::try_from(number), Err(Error::UnknownPurpose));
        }
    }
}
