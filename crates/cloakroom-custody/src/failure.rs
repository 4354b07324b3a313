//! Why a root key cannot be used.

/// A failed operation of a root key. Texts never contain a key, a credential or a provider's own message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No answer, or none that is final. A later attempt may succeed; keys in memory remain usable.
    #[error("the key provider is unavailable: {0}")]
    Unavailable(&'static str),
    /// The provider does not accept this node. Keys in memory remain usable, because an expired credential is an
    /// outage.
    #[error("the key provider rejected this node: {0}")]
    Denied(&'static str),
    /// The root key was disabled, deleted or scheduled for deletion.
    #[error("the root key cannot be used at its provider: {0}")]
    Disabled(&'static str),
    /// The node holds too few shares of its root key.
    #[error("the node is sealed: it needs the shares of its root key")]
    Sealed,
    /// Another root key wrapped the key, or it was altered.
    #[error("it was wrapped by another root key, or altered")]
    Integrity,
    /// Names the setting, file or object that must be changed.
    #[error("{0}")]
    Configuration(String),
}

impl Failure {
    /// The label of this failure in metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Denied(_) => "denied",
            Self::Disabled(_) => "disabled",
            Self::Sealed => "sealed",
            Self::Integrity => "integrity",
            Self::Configuration(_) => "configuration",
        }
    }
}
