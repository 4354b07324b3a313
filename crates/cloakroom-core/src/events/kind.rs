//! The types of events.

/// Lists every event type once: variant and name.
macro_rules! event_kinds {
    ($($variant:ident $name:literal;)+) => {
        /// An event type. Names are part of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventKind { $($variant),+ }

        impl EventKind {
            /// Every event type, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

event_kinds! {
    TokenCreated "token.created";
    TokenUpdated "token.updated";
    TokenRead "token.read";
    TokenDeleted "token.deleted";
    TokenExpired "token.expired";
    TokenPropertyExpired "token.property.expired";
    TokenIntentCreated "token-intent.created";
    TokenIntentDeleted "token-intent.deleted";
    TokenIntentConverted "token-intent.converted";
    ThreedsSessionCreated "3ds.session.created";
    ThreedsMethodCompleted "3ds.session.method-completed";
    ThreedsAuthenticated "3ds.session.authenticated";
    ThreedsChallengeCompleted "3ds.session.challenge-completed";
    ThreedsDecoupledNotification "3ds.session.decoupled-challenge-notification";
    ThreedsResultRetrieved "3ds.session.challenge-result-retrieved";
    ApplicationCreated "application.created";
    ApplicationUpdated "application.updated";
    ApplicationDeleted "application.deleted";
    ApplicationKeyCreated "application.key.created";
    ApplicationKeyDeleted "application.key.deleted";
    SessionCreated "session.created";
    SessionAuthorized "session.authorized";
    ProxyCreated "proxy.created";
    ProxyUpdated "proxy.updated";
    ProxyDeleted "proxy.deleted";
    ProxyInvoked "proxy.invoked";
    TenantUpdated "tenant.updated";
    FingerprintKeyUpdated "tenant.fingerprint-key.updated";
    InvitationCreated "tenant.invitation.created";
    InvitationAccepted "tenant.invitation.accepted";
    InvitationDeleted "tenant.invitation.deleted";
    InvitationResent "tenant.invitation.resent";
    MemberCreated "tenant.member.created";
    MemberDeleted "tenant.member.deleted";
}

impl EventKind {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}
