//! The key pairs that sign webhook deliveries. Receivers know their public halves.

use cloakroom_crypto::{
    Key, PolicyDigest, Purpose as _, RecordContext, SignatureKey, Signing, WrapContext, open, seal,
};
use cloakroom_platform::storage::Transaction;
use jiff::Timestamp;

use super::create::{NewKey, wrap_below_root};
use super::keyset::KeysetChange;
use super::load::usable;
use super::store::{self, SigningKeyRow};
use super::{Error, Keyring, State, unwrap_below_root};

/// A key pair that signs webhook deliveries.
pub struct SigningKey {
    pub version: u32,
    /// `SubjectPublicKeyInfo`.
    pub public_key: Vec<u8>,
    pair: SignatureKey,
}

impl SigningKey {
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.pair.sign(message).map_err(|_| Error::Seal)
    }
}

impl Keyring {
    /// Loads the key pairs, newest first. The first one signs; receivers may still verify with the others.
    pub async fn load_signing_keys(&self) -> Result<Vec<SigningKey>, Error> {
        let wrapped = self.loader.list_system_keys().await?;
        let mut keys = Vec::new();
        for row in store::list_signing_keys(&self.loader.db).await? {
            let key_row = usable::<Signing>(&wrapped).find(|key| key.version == row.version);
            let key_row = key_row.ok_or(Error::Missing("key of a webhook signing key"))?;
            let context = self.signing_context(row.version);
            let key: Key<Signing> =
                unwrap_below_root(&self.loader.roots, &key_row.wrapped, &context).await?;
            let record = SigningRecord::new(row.version, &row.public_key);
            let pkcs8 = open(&key, &record.context(&self.loader.environment), &row.sealed)
                .map_err(|_| Error::Integrity)?;
            keys.push(SigningKey {
                version: row.version,
                pair: SignatureKey::from_sealed(&pkcs8).map_err(|_| Error::Integrity)?,
                public_key: row.public_key,
            });
        }
        Ok(keys)
    }

    /// Creates the key pair after `newest`, which signs from then on; `None` if another node has created it.
    pub async fn create_signing_key(
        &self,
        transaction: &Transaction,
        newest: u32,
        at: Timestamp,
    ) -> Result<Option<KeysetChange>, Error> {
        let version = newest + 1;
        let pair = tokio::task::spawn_blocking(SignatureKey::generate);
        let pair = pair
            .await
            .map_err(|_| Error::Seal)?
            .map_err(|_| Error::Seal)?;
        let public_key = pair.public_key().map_err(|_| Error::Seal)?;
        let key = Key::<Signing>::generate();
        let new = NewKey {
            environment: &self.loader.environment,
            tenant: None,
            version,
            at,
        };
        let wrapped = wrap_below_root(&self.loader.roots, &key, &new).await?;
        let pkcs8 = pair.expose_for_sealing().map_err(|_| Error::Seal)?;
        let record = SigningRecord::new(version, &public_key);
        let record = record.context(&self.loader.environment);
        let sealed = seal(&key, version, &record, pkcs8.expose()).map_err(|_| Error::Seal)?;
        let row = SigningKeyRow {
            version,
            public_key,
            sealed,
        };
        let purpose = Signing::PURPOSE.number();
        let known = store::list_system_keys_within(transaction).await?.rows;
        if !store::insert_signing_key(transaction, purpose, &wrapped, &row).await? {
            return Ok(None);
        }
        let replaced = known
            .into_iter()
            .filter(|row| row.purpose == purpose && row.version == newest);
        let replaced = replaced.map(|mut row| {
            let before = row.member();
            row.state = State::DecryptOnly as i16;
            (before, row.member())
        });
        Ok(Some(KeysetChange {
            replaced: replaced.collect(),
            inserted: vec![wrapped.member()],
        }))
    }

    fn signing_context(&self, version: u32) -> WrapContext<'_> {
        WrapContext {
            environment: &self.loader.environment,
            tenant: None,
            version,
        }
    }
}

/// The associated data of a sealed private key.
struct SigningRecord {
    id: [u8; 4],
    policy: PolicyDigest,
}

impl SigningRecord {
    fn new(version: u32, public_key: &[u8]) -> Self {
        let policy = PolicyDigest::new::<&str>("rsa", &[], None);
        Self {
            id: version.to_be_bytes(),
            policy: policy.with("public_key", &hex::encode(public_key)),
        }
    }

    fn context<'a>(&'a self, environment: &'a str) -> RecordContext<'a> {
        RecordContext {
            environment,
            tenant: [0; 16],
            kind: "signing_key",
            record_id: &self.id,
            column: "private_key",
            row_version: 1,
            policy: self.policy,
        }
    }
}
