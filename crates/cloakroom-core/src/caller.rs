//! The caller of a request.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use cloakroom_platform::api::{Answer, ApiError};

use crate::access::Principal;
use crate::deprecations::FeatureMarks;
use crate::idempotency::{Lease, ResponseTemplate};
use crate::keys::{self, Keyring, TenantKeys};

/// One request of a principal. Every operation takes one.
#[derive(Clone, Debug)]
pub struct Caller {
    principal: Arc<Principal>,
    /// Identifies the request in logs.
    pub trace_id: Arc<str>,
    /// IP address of the client, if known.
    pub origin: Option<IpAddr>,
    /// Idempotency lease of a request with an idempotency key.
    pub lease: Option<Arc<Lease>>,
    /// Deprecated features this request used.
    pub deprecated_features: FeatureMarks,
}

impl Deref for Caller {
    type Target = Principal;

    fn deref(&self) -> &Principal {
        &self.principal
    }
}

impl Caller {
    pub fn new(principal: Arc<Principal>, trace_id: Arc<str>, origin: Option<IpAddr>) -> Self {
        Self {
            principal,
            trace_id,
            origin,
            lease: None,
            deprecated_features: FeatureMarks::default(),
        }
    }

    /// This caller, holding the idempotency lease.
    pub fn with_lease(&self, lease: Arc<Lease>) -> Self {
        Self {
            lease: Some(lease),
            ..self.clone()
        }
    }

    /// The current keys of the tenant. They also encrypt the stored response from now on.
    pub async fn current_keys(&self, keyring: &Keyring) -> Result<Arc<TenantKeys>, keys::Error> {
        let keys = keyring.of(self.tenant).await?;
        if let Some(lease) = &self.lease {
            lease.use_keys(&keys);
        }
        Ok(keys)
    }

    /// The response to this request, which is stored if it has an idempotency key.
    ///
    /// ```ignore
    /// let template = caller.response_template(|created: &Created| Answer::ok(&CreatedBody::new(created)));
    /// let created = module::create(&vault, &caller, new, &template).await?;
    /// template.render(&created)
    /// ```
    pub fn response_template<'a, T: ?Sized>(
        &'a self,
        render: impl Fn(&T) -> Result<Answer, ApiError> + Send + Sync + 'a,
    ) -> ResponseTemplate<'a, T> {
        ResponseTemplate::new(self.lease.as_deref(), render)
    }
}
