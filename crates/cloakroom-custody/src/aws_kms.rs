//! The provider `aws_kms`: a symmetric key in AWS KMS, with the context as encryption context.
//!
//! The policy of the key can require the encryption context, for example `kms:EncryptionContext:environment`. A node
//! needs `kms:Decrypt`; the commands that create tenants and keys also need `kms:Encrypt`.

use std::collections::HashMap;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_kms::config::Region;
use aws_sdk_kms::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_kms::primitives::Blob;
use aws_sdk_kms::types::{KeySpec, KeyState, KeyUsageType};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::config;
use tokio::sync::OnceCell;

use crate::context::ProviderContext;
use crate::{Failure, Weakness, secret_file};

/// Attempts of one call, within its deadline.
const ATTEMPTS_MAX: u32 = 3;
const FIRST_BACKOFF: Duration = Duration::from_millis(50);

pub(crate) struct Kms {
    arn: String,
    region: String,
    endpoint: Option<String>,
    /// Content of the shared credentials file.
    credentials: Option<Sensitive<String>>,
    /// Created with the first call, because finding the platform's identity is asynchronous.
    client: OnceCell<aws_sdk_kms::Client>,
}

impl Kms {
    pub(crate) fn new(config: &config::RootKey) -> Result<Self, Failure> {
        let invalid = |what: &str| Failure::Configuration(format!("root_key.aws_kms_key {what}"));
        let arn = config.aws_kms_key.clone();
        let arn = arn.ok_or_else(|| invalid("is not set"))?;
        let region = arn.split(':').nth(3).filter(|region| !region.is_empty());
        let region = region
            .ok_or_else(|| invalid("is not the ARN of a key"))?
            .to_owned();
        let file = config.aws_kms_credentials_file.as_deref();
        Ok(Self {
            region,
            arn,
            endpoint: config.aws_kms_endpoint.clone(),
            credentials: file.map(secret_file::read).transpose()?,
            client: OnceCell::new(),
        })
    }

    pub(crate) fn root_name(&self) -> String {
        self.arn.clone()
    }

    pub(crate) async fn encrypt(
        &self,
        raw: Sensitive<Vec<u8>>,
        context: ProviderContext,
    ) -> Result<Vec<u8>, Failure> {
        let client = self.client().await;
        let request = client
            .encrypt()
            .key_id(&self.arn)
            .plaintext(Blob::new(raw.expose().as_slice()))
            .set_encryption_context(Some(encryption_context(context)));
        let answer = request.send().await.map_err(|error| classify(&error))?;
        let ciphertext = answer.ciphertext_blob.ok_or(UNEXPECTED)?;
        Ok(ciphertext.into_inner())
    }

    pub(crate) async fn decrypt(
        &self,
        ciphertext: &[u8],
        context: ProviderContext,
    ) -> Result<Sensitive<Vec<u8>>, Failure> {
        let client = self.client().await;
        // The key id makes KMS reject a ciphertext of another key that this node may use.
        let request = client
            .decrypt()
            .key_id(&self.arn)
            .ciphertext_blob(Blob::new(ciphertext))
            .set_encryption_context(Some(encryption_context(context)));
        let answer = request.send().await.map_err(|error| classify(&error))?;
        let raw = answer.plaintext.ok_or(UNEXPECTED)?;
        Ok(Sensitive::new(raw.into_inner()))
    }

    pub(crate) async fn weaknesses(&self) -> Result<Vec<Weakness>, Failure> {
        let mut found = vec![];
        let mut add = |what: &str| found.push(Weakness(what.to_owned()));
        if self.credentials.is_none() && std::env::var_os("AWS_ACCESS_KEY_ID").is_some() {
            add(
                "AWS credentials come from an environment variable; use the identity of the platform",
            );
        }
        let client = self.client().await;
        let key = client.describe_key().key_id(&self.arn).send().await;
        let Ok(Some(key)) = key.map(|answer| answer.key_metadata) else {
            add(
                "the key could not be inspected: allow kms:DescribeKey and kms:GetKeyRotationStatus",
            );
            return Ok(found);
        };
        match key.key_state {
            Some(KeyState::Enabled) | None => {}
            Some(_) => return Err(Failure::Disabled("its state is not Enabled")),
        }
        let is_symmetric = key
            .key_spec
            .is_none_or(|spec| spec == KeySpec::SymmetricDefault);
        let is_for_encryption = key
            .key_usage
            .is_none_or(|usage| usage == KeyUsageType::EncryptDecrypt);
        if !is_symmetric || !is_for_encryption {
            add("the key is not a symmetric encryption key");
        }
        let rotation = client.get_key_rotation_status().key_id(&self.arn).send();
        if !rotation
            .await
            .is_ok_and(|status| status.key_rotation_enabled)
        {
            add("automatic rotation of the key is off: enable it in AWS KMS");
        }
        Ok(found)
    }

    async fn client(&self) -> &aws_sdk_kms::Client {
        self.client.get_or_init(|| self.connect()).await
    }

    async fn connect(&self) -> aws_sdk_kms::Client {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .build_https();
        let retries = RetryConfig::standard()
            .with_max_attempts(ATTEMPTS_MAX)
            .with_initial_backoff(FIRST_BACKOFF);
        let region = Region::new(self.region.clone());
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http.clone())
            .region(region.clone())
            .retry_config(retries);
        if let Some(credentials) = &self.credentials {
            let files = EnvConfigFiles::builder()
                .with_contents(
                    EnvConfigFileKind::Credentials,
                    credentials.expose().as_str(),
                )
                .build();
            let context = ProviderConfig::without_region()
                .with_region(Some(region))
                .with_http_client(http);
            let provider = ProfileFileCredentialsProvider::builder()
                .configure(&context)
                .profile_files(files)
                .profile_name("default");
            loader = loader.credentials_provider(provider.build());
        }
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        aws_sdk_kms::Client::new(&loader.load().await)
    }
}

fn encryption_context(context: ProviderContext) -> HashMap<String, String> {
    let field = |(name, value): (&str, String)| (name.to_owned(), value);
    context.fields.into_iter().map(field).collect()
}

const UNEXPECTED: Failure = Failure::Unavailable("AWS KMS sent an unexpected response");

/// What an error of AWS KMS means for the root key. Its message is not passed on.
fn classify<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> Failure {
    let SdkError::ServiceError(service) = error else {
        return match error {
            SdkError::TimeoutError(_) => Failure::Unavailable("AWS KMS did not respond in time"),
            SdkError::DispatchFailure(failure) if !failure.is_io() && !failure.is_timeout() => {
                Failure::Unavailable("AWS KMS cannot be reached, or there are no credentials")
            }
            SdkError::DispatchFailure(_) => Failure::Unavailable("AWS KMS cannot be reached"),
            _ => UNEXPECTED,
        };
    };
    match service.err().code().unwrap_or_default() {
        "DisabledException" => Failure::Disabled("it is disabled"),
        "KMSInvalidStateException" => Failure::Disabled("it is pending deletion or unavailable"),
        "NotFoundException" => Failure::Disabled("it does not exist"),
        "InvalidCiphertextException" | "IncorrectKeyException" => Failure::Integrity,
        "ThrottlingException" | "LimitExceededException" | "RequestLimitExceeded" => {
            Failure::Unavailable("AWS KMS throttles requests")
        }
        "AccessDeniedException" => Failure::Denied("its policy does not allow the request"),
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "IncompleteSignature"
        | "ExpiredTokenException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException" => {
            Failure::Denied("the credentials are invalid or have expired")
        }
        _ => Failure::Unavailable("AWS KMS reports an error"),
    }
}
