//! One root key: wraps and unwraps keys through its provider.

use std::pin::Pin;
use std::time::Duration;
use std::time::Instant;

use cloakroom_crypto::{
    Key, Purpose, RootId, RootKek, RootWrapped, Sensitive, TenantKek, WrapContext, Wraps,
};
use cloakroom_platform::config;

use crate::calls::{Calls, Operation};
use crate::context::ProviderContext;
use crate::{Description, Failure, Weakness, file};

/// Provider numbers in wrapped keys. They never change.
pub(crate) const IN_PROCESS: u8 = 1;
#[cfg(feature = "pkcs11")]
pub(crate) const PKCS11: u8 = 2;
#[cfg(feature = "aws-kms")]
pub(crate) const AWS_KMS: u8 = 3;
#[cfg(feature = "transit")]
pub(crate) const TRANSIT: u8 = 4;

/// A root key at its provider.
pub struct RootKey {
    id: RootId,
    provider: Provider,
    calls: Calls,
    name: &'static str,
}

enum Provider {
    /// The bytes are in the memory of this process: from a file, or combined from shares.
    InProcess(Key<RootKek>),
    #[cfg(feature = "pkcs11")]
    Pkcs11(crate::pkcs11::Token),
    #[cfg(feature = "aws-kms")]
    AwsKms(Box<crate::aws_kms::Kms>),
    #[cfg(feature = "transit")]
    Transit(Box<crate::transit::Transit>),
}

/// A call to a provider. Boxed, because the futures of the AWS SDK are deeply nested, and calls are rare.
type Call<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

impl RootKey {
    /// Prepares the configured root key. An external provider is first called when a key is wrapped or unwrapped.
    ///
    /// [`Failure::Sealed`] for the provider `shares`: [`RootKey::in_process`] takes the combined key.
    pub fn load(config: &config::RootKey) -> Result<Self, Failure> {
        match config.provider {
            config::Provider::File => {
                let path = config
                    .require_file()
                    .map_err(|error| Failure::Configuration(error.to_string()))?;
                Self::in_process(file::read(path)?, config)
            }
            config::Provider::Shares => Err(Failure::Sealed),
            #[cfg(feature = "pkcs11")]
            config::Provider::Pkcs11 => {
                let token = crate::pkcs11::Token::new(config)?;
                let name = token.root_name();
                Self::new((PKCS11, name), Provider::Pkcs11(token), config)
            }
            #[cfg(feature = "aws-kms")]
            config::Provider::AwsKms => {
                let kms = crate::aws_kms::Kms::new(config)?;
                let name = kms.root_name();
                Self::new((AWS_KMS, name), Provider::AwsKms(Box::new(kms)), config)
            }
            #[cfg(feature = "transit")]
            config::Provider::Transit => {
                let transit = crate::transit::Transit::new(config)?;
                let name = transit.root_name();
                Self::new(
                    (TRANSIT, name),
                    Provider::Transit(Box::new(transit)),
                    config,
                )
            }
            #[cfg(not(all(feature = "pkcs11", feature = "aws-kms", feature = "transit")))]
            other => Err(Failure::Configuration(format!(
                "root_key.provider: this build does not include the provider `{}`",
                other.as_str()
            ))),
        }
    }

    /// A root key whose bytes are in this process.
    pub fn in_process(root: Key<RootKek>, config: &config::RootKey) -> Result<Self, Failure> {
        let name = hex::encode(root.check_value().as_bytes());
        Self::new((IN_PROCESS, name), Provider::InProcess(root), config)
    }

    fn new(
        (number, name): (u8, String),
        provider: Provider,
        config: &config::RootKey,
    ) -> Result<Self, Failure> {
        let id = RootId::new(number, name)
            .map_err(|_| Failure::Configuration("the id of the root key is too long".into()))?;
        let name = config.provider.as_str();
        Ok(Self {
            id,
            provider,
            calls: Calls::new(name, config.deadline),
            name,
        })
    }

    pub fn id(&self) -> &RootId {
        &self.id
    }

    /// Whether the provider replaces the key material behind the same id, as KMS and Transit do.
    pub fn has_own_versions(&self) -> bool {
        match self.provider {
            Provider::InProcess(_) => false,
            #[cfg(feature = "pkcs11")]
            Provider::Pkcs11(_) => false,
            #[cfg(feature = "aws-kms")]
            Provider::AwsKms(_) => true,
            #[cfg(feature = "transit")]
            Provider::Transit(_) => true,
        }
    }

    /// The provider and the id, for operators.
    pub fn display_name(&self) -> String {
        format!("{} {}", self.name, self.id.name())
    }

    pub(crate) fn start_serving(&self) {
        self.calls.start_serving();
    }

    pub(crate) fn unavailable_for(&self) -> Duration {
        self.calls.unavailable_for()
    }

    pub async fn wrap<P: Purpose>(
        &self,
        key: &Key<P>,
        context: &WrapContext<'_>,
    ) -> Result<Vec<u8>, Failure>
    where
        RootKek: Wraps<P>,
    {
        let ciphertext = match &self.provider {
            Provider::InProcess(root) => {
                cloakroom_crypto::wrap(root, key, context).map_err(|_| Failure::Integrity)?
            }
            _ => {
                let call = self.encrypt(
                    key.expose_for_custody(),
                    ProviderContext::new::<P>(context)?,
                );
                self.calls.run(Operation::Wrap, call).await?
            }
        };
        let wrapped = RootWrapped {
            root: self.id.clone(),
            binding: key.custody_binding(context, &self.id),
            ciphertext: &ciphertext,
        };
        wrapped.to_bytes().map_err(|_| Failure::Integrity)
    }

    /// Unwraps a key that names this root key.
    pub(crate) async fn unwrap<P: Purpose>(
        &self,
        wrapped: &RootWrapped<'_>,
        context: &WrapContext<'_>,
    ) -> Result<Key<P>, Failure>
    where
        RootKek: Wraps<P>,
    {
        if let Provider::InProcess(root) = &self.provider {
            return cloakroom_crypto::unwrap::<_, P>(root, context, wrapped.ciphertext)
                .and_then(|key| key.verify_binding(context, wrapped))
                .map_err(|_| Failure::Integrity);
        }
        let call = self.decrypt(wrapped.ciphertext, ProviderContext::new::<P>(context)?);
        let raw = self.calls.run(Operation::Unwrap, call).await?;
        Key::from_custody(&raw, context, wrapped).map_err(|_| Failure::Integrity)
    }

    /// Wraps and unwraps a key of no further use, and asks the provider about the root key.
    pub async fn describe(&self, environment: &str) -> Result<Description, Failure> {
        let context = check_context(environment);
        let key = Key::<TenantKek>::generate();
        let started_at = Instant::now();
        let wrapped = self.wrap(&key, &context).await?;
        let wrapped = RootWrapped::parse(&wrapped).map_err(|_| Failure::Integrity)?;
        self.unwrap::<TenantKek>(&wrapped, &context).await?;
        Ok(Description {
            root: self.display_name(),
            round_trip: started_at.elapsed(),
            weaknesses: self
                .calls
                .run(Operation::Describe, self.weaknesses())
                .await?,
        })
    }

    /// Calls the provider if the last call got no response, so that the end of an outage is noticed without requests.
    ///
    /// Wraps and unwraps, because a provider can do the one and not the other. Returns whether it responds.
    pub(crate) async fn probe(&self, environment: &str) -> bool {
        if self.unavailable_for().is_zero() {
            return true;
        }
        let context = check_context(environment);
        let call = async {
            let key = Key::<TenantKek>::generate();
            let encryption = ProviderContext::new::<TenantKek>(&context)?;
            let ciphertext = self.encrypt(key.expose_for_custody(), encryption).await?;
            let decryption = ProviderContext::new::<TenantKek>(&context)?;
            self.decrypt(&ciphertext, decryption).await
        };
        self.calls.probe(call).await
    }

    fn encrypt(&self, raw: Sensitive<Vec<u8>>, context: ProviderContext) -> Call<'_, Vec<u8>> {
        match &self.provider {
            Provider::InProcess(_) => Box::pin(async { Err(Failure::Integrity) }),
            #[cfg(feature = "pkcs11")]
            Provider::Pkcs11(token) => Box::pin(token.encrypt(raw, context)),
            #[cfg(feature = "aws-kms")]
            Provider::AwsKms(kms) => Box::pin(kms.encrypt(raw, context)),
            #[cfg(feature = "transit")]
            Provider::Transit(transit) => Box::pin(transit.encrypt(raw, context)),
        }
    }

    fn decrypt<'a>(
        &'a self,
        ciphertext: &'a [u8],
        context: ProviderContext,
    ) -> Call<'a, Sensitive<Vec<u8>>> {
        match &self.provider {
            Provider::InProcess(_) => Box::pin(async { Err(Failure::Integrity) }),
            #[cfg(feature = "pkcs11")]
            Provider::Pkcs11(token) => Box::pin(token.decrypt(ciphertext, context)),
            #[cfg(feature = "aws-kms")]
            Provider::AwsKms(kms) => Box::pin(kms.decrypt(ciphertext, context)),
            #[cfg(feature = "transit")]
            Provider::Transit(transit) => Box::pin(transit.decrypt(ciphertext, context)),
        }
    }

    fn weaknesses(&self) -> Call<'_, Vec<Weakness>> {
        match &self.provider {
            // The configuration check reports a file in production; reading it has checked mode and owner.
            Provider::InProcess(_) => Box::pin(async { Ok(vec![]) }),
            #[cfg(feature = "pkcs11")]
            Provider::Pkcs11(token) => Box::pin(token.weaknesses()),
            #[cfg(feature = "aws-kms")]
            Provider::AwsKms(kms) => Box::pin(kms.weaknesses()),
            #[cfg(feature = "transit")]
            Provider::Transit(transit) => Box::pin(transit.weaknesses()),
        }
    }
}

/// The context of keys that only check a root key.
fn check_context(environment: &str) -> WrapContext<'_> {
    WrapContext {
        environment,
        tenant: Some([0; 16]),
        version: 0,
    }
}
