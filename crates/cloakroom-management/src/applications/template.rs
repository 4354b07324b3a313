//! Application templates: grants to start from. Applications do not reference the template they were created from.

use cloakroom_core::access::{
    ALL_PERMISSIONS, AccessRule, ApplicationKind, Container, Permission, PermissionSet, Scope,
    Transform,
};
use uuid::{Uuid, uuid};

/// Grants for a common purpose.
pub struct Template {
    pub id: Uuid,
    pub name: &'static str,
    pub description: &'static str,
    pub kind: ApplicationKind,
    /// `starters`, `payments`, `banking`, `pii` or `management`.
    pub category: &'static str,
    rules: &'static [Rule],
}

struct Rule {
    description: &'static str,
    container: &'static str,
    transform: Transform,
    permissions: &'static [Permission],
}

impl Template {
    /// Whether the template is recommended for a first application.
    pub fn is_starter(&self) -> bool {
        self.category == "starters"
    }

    /// Management applications have permissions, all others have rules.
    pub fn permissions(&self) -> PermissionSet {
        let is_wanted = |permission: &Permission| {
            self.rules.is_empty() && permission.fits(ApplicationKind::Management)
        };
        ALL_PERMISSIONS.iter().copied().filter(is_wanted).collect()
    }

    pub fn rules(&self) -> Vec<AccessRule> {
        let rule = |(rule, priority): (&Rule, u32)| AccessRule {
            description: rule.description.to_owned(),
            priority,
            scope: Scope::Container(Container::known(rule.container)),
            transform: rule.transform,
            permissions: rule.permissions.iter().copied().collect(),
        };
        self.rules.iter().zip(1..).map(rule).collect()
    }
}

use ApplicationKind::{Management, Private, Public};
use Permission::{TokenCreate, TokenDelete, TokenRead, TokenSearch, TokenUpdate, TokenUse};

/// All templates, in the order in which they are listed.
pub const TEMPLATES: &[Template] = &[
    Template {
        id: uuid!("6f486ec1-ddf4-4040-b7f1-3ddca4209495"),
        name: "Full Access",
        description: "Do everything with every token, and see its data",
        kind: Private,
        category: "starters",
        rules: &[Rule {
            description: "Do everything with every token",
            container: "/",
            transform: Transform::Reveal,
            permissions: &[
                TokenCreate,
                TokenUpdate,
                TokenRead,
                TokenSearch,
                TokenDelete,
                TokenUse,
            ],
        }],
    },
    Template {
        id: uuid!("db9148c1-a55f-4164-b830-a20ab6d720ae"),
        name: "Collect PCI Data",
        description: "Take cards from browsers and apps",
        kind: Public,
        category: "payments",
        rules: &[collect("Collect PCI data", "/pci/")],
    },
    Template {
        id: uuid!("e6d4c554-6703-4bbb-b351-42cd2ee5cb5a"),
        name: "Display PCI Data",
        description: "Show cards masked",
        kind: Private,
        category: "payments",
        rules: &[read_masked("Read PCI data masked", "/pci/")],
    },
    Template {
        id: uuid!("31efed55-035c-4b49-b1a1-609a728d91ce"),
        name: "Use PCI Data",
        description: "Send cards to others through proxies and reactors",
        kind: Private,
        category: "payments",
        rules: &[use_in_proxies("Use PCI data", "/pci/")],
    },
    Template {
        id: uuid!("1b0d5c1e-7f0a-4c36-9a53-2f1f8f6f3f0d"),
        name: "Full PCI Data Access",
        description: "Do everything with cards, and see them masked",
        kind: Private,
        category: "payments",
        rules: &[
            Rule {
                description: "Manage PCI data, masked",
                container: "/pci/",
                transform: Transform::Mask,
                permissions: &[
                    TokenCreate,
                    TokenUpdate,
                    TokenRead,
                    TokenSearch,
                    TokenDelete,
                ],
            },
            use_in_proxies("Use PCI data", "/pci/"),
        ],
    },
    Template {
        id: uuid!("d3ea55c1-4008-4703-9d52-db078ca5e245"),
        name: "Collect Bank Data",
        description: "Take bank accounts from browsers and apps",
        kind: Public,
        category: "banking",
        rules: &[collect("Collect bank data", "/bank/")],
    },
    Template {
        id: uuid!("8c2a9e54-3b6d-4f17-8e0b-5d9a7c41e2b6"),
        name: "Read Bank Data",
        description: "Show bank accounts masked",
        kind: Private,
        category: "banking",
        rules: &[read_masked("Read bank data masked", "/bank/")],
    },
    Template {
        id: uuid!("d6d8c64c-1145-4b7f-a4bc-bb5cd3a40128"),
        name: "Use Bank Data",
        description: "Send bank accounts to others through proxies and reactors",
        kind: Private,
        category: "banking",
        rules: &[use_in_proxies("Use bank data", "/bank/")],
    },
    Template {
        id: uuid!("da06cf91-caf4-44f4-886a-ab3d71d9ca5f"),
        name: "Collect PII Data",
        description: "Take personal data from browsers and apps",
        kind: Public,
        category: "pii",
        rules: &[collect("Collect PII data", "/pii/")],
    },
    Template {
        id: uuid!("931b306f-6be7-405d-9a8d-1442a99dd2d7"),
        name: "Full Management Access",
        description: "Administrate everything",
        kind: Management,
        category: "management",
        rules: &[],
    },
];

const fn collect(description: &'static str, container: &'static str) -> Rule {
    Rule {
        description,
        container,
        transform: Transform::Mask,
        permissions: &[TokenCreate],
    }
}

const fn read_masked(description: &'static str, container: &'static str) -> Rule {
    Rule {
        description,
        container,
        transform: Transform::Mask,
        permissions: &[TokenRead],
    }
}

const fn use_in_proxies(description: &'static str, container: &'static str) -> Rule {
    Rule {
        description,
        container,
        transform: Transform::Reveal,
        permissions: &[TokenUse],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use cloakroom_core::access::{Grants, NewGrants};

    use super::*;

    #[test]
    fn every_template_is_valid() {
        let mut ids = HashSet::new();
        for template in TEMPLATES {
            let grants = Grants {
                permissions: template.permissions(),
                rules: template.rules(),
            };
            let validated = NewGrants::from(grants.clone()).validate(Some(template.kind));
            assert_eq!(validated, Ok(grants), "{}", template.name);
            assert!(ids.insert(template.id), "{}", template.name);
            assert_eq!(template.id.get_version_num(), 4, "{}", template.name);
        }
    }
}
