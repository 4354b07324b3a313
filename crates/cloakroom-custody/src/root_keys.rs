//! The root keys that a node has loaded: the active one wraps, and each unwraps what it wrapped.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_crypto::{Key, Purpose, RootKek, RootWrapped, WrapContext, Wraps};
use cloakroom_platform::config;

use crate::{Failure, RootKey};

/// The active root key, and the one before it while a rotation is under way.
#[derive(Clone)]
pub struct RootKeys {
    active: Arc<RootKey>,
    previous: Option<Arc<RootKey>>,
}

impl RootKeys {
    pub fn new(active: RootKey) -> Self {
        Self {
            active: Arc::new(active),
            previous: None,
        }
    }

    /// Adds the root key that wrapped the keys until now.
    pub fn with_previous(self, previous: RootKey) -> Self {
        Self {
            previous: Some(Arc::new(previous)),
            ..self
        }
    }

    /// Adds the root key that `root_key.previous` names, if any.
    pub fn with_configured_previous(self, config: &config::RootKey) -> Result<Self, Failure> {
        let previous = config
            .load_previous()
            .map_err(|error| Failure::Configuration(format!("root_key.previous: {error}")))?;
        match previous {
            Some(previous) => Ok(self.with_previous(RootKey::load(&previous)?)),
            None => Ok(self),
        }
    }

    pub fn active(&self) -> &RootKey {
        &self.active
    }

    pub fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// From now on clients wait for unwrapped keys: `root_key.deadline` applies.
    pub fn start_serving(&self) {
        for root in self.all() {
            root.start_serving();
        }
    }

    /// How long a provider has not answered; zero if all do.
    pub fn unavailable_for(&self) -> Duration {
        let outages = self.all().map(RootKey::unavailable_for);
        outages.max().unwrap_or_default()
    }

    /// Calls providers whose last call got no response; returns whether all respond.
    pub async fn probe(&self, environment: &str) -> bool {
        let mut all_respond = true;
        for root in self.all() {
            all_respond &= root.probe(environment).await;
        }
        all_respond
    }

    pub async fn wrap<P: Purpose>(
        &self,
        key: &Key<P>,
        context: &WrapContext<'_>,
    ) -> Result<Vec<u8>, Failure>
    where
        RootKek: Wraps<P>,
    {
        self.active.wrap(key, context).await
    }

    /// Unwraps with the root key that `wrapped` names. No other is tried: each trial would be a call to a provider.
    pub async fn unwrap<P: Purpose>(
        &self,
        wrapped: &[u8],
        context: &WrapContext<'_>,
    ) -> Result<Key<P>, Failure>
    where
        RootKek: Wraps<P>,
    {
        let wrapped = RootWrapped::parse(wrapped).map_err(|_| Failure::Integrity)?;
        let root = self.all().find(|root| *root.id() == wrapped.root);
        let root = root.ok_or(Failure::Integrity)?;
        root.unwrap(&wrapped, context).await
    }

    fn all(&self) -> impl Iterator<Item = &RootKey> {
        let previous = self.previous.as_deref();
        std::iter::once(&*self.active).chain(previous)
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::TenantKek;

    use super::*;

    const CONTEXT: WrapContext<'static> = WrapContext {
        environment: "test",
        tenant: Some([1; 16]),
        version: 1,
    };

    fn new_root() -> RootKey {
        RootKey::in_process(Key::generate(), &config::RootKey::default()).unwrap()
    }

    #[tokio::test]
    async fn keys_of_both_root_keys_unwrap_and_new_ones_are_wrapped_by_the_active() {
        let (one, two) = (new_root(), new_root());
        let key = Key::<TenantKek>::generate();
        let old = one.wrap(&key, &CONTEXT).await.unwrap();
        let two_id = two.id().clone();
        let roots = RootKeys::new(two).with_previous(one);

        let unwrapped: Key<TenantKek> = roots.unwrap(&old, &CONTEXT).await.unwrap();
        let new = roots.wrap(&key, &CONTEXT).await.unwrap();

        assert_eq!(unwrapped.check_value(), key.check_value());
        assert_eq!(RootWrapped::parse(&new).unwrap().root, two_id);
        let only_active = RootKeys::new(new_root());
        let unknown = only_active.unwrap::<TenantKek>(&old, &CONTEXT).await;
        assert_eq!(unknown.err(), Some(Failure::Integrity));
    }
}
