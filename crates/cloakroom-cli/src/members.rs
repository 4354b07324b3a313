//! `cloakroom member` and `cloakroom invitation`: members have no login, so commands create them.

use clap::{Args, Subcommand, ValueEnum};
use cloakroom::config::Config;
use cloakroom::members::{self, Email, InvitationLink, NewInvitation, NewMember, Role};
use serde_json::json;
use uuid::Uuid;

use crate::manage::{find_tenant, open, parse_id};
use crate::output::{print_list, print_result};

#[derive(Subcommand)]
pub(crate) enum MemberCommand {
    /// Add a member
    Add(MemberAdd),
    /// List the members of a tenant, newest first
    List {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
    },
}

#[derive(Args)]
pub(crate) struct MemberAdd {
    /// Tenant id or name
    #[arg(long)]
    tenant: String,
    /// Email address, unique in the tenant
    #[arg(long)]
    email: String,
    /// What the member may do
    #[arg(long, value_enum, default_value = "admin")]
    role: RoleName,
    /// Make this member the owner; a tenant has only one
    #[arg(long, conflicts_with = "role")]
    owner: bool,
    /// First name, shown in lists of members
    #[arg(long, value_name = "NAME")]
    first_name: Option<String>,
    /// Last name, shown in lists of members
    #[arg(long, value_name = "NAME")]
    last_name: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum InvitationCommand {
    /// Invite a member; prints the link, which is shown only once
    Create {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Email address of the person to invite
        #[arg(long)]
        email: String,
        /// What the member may do
        #[arg(long, value_enum, default_value = "admin")]
        role: RoleName,
    },
    /// List the invitations of a tenant, newest first
    List {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
    },
    /// Extend an invitation by 72 hours; prints a new link, which is shown only once
    Resend {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Id of the invitation, from `cloakroom invitation list`
        #[arg(long, value_parser = parse_id)]
        invitation: Uuid,
    },
    /// Accept an invitation: make the holder of the link a member
    Accept {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Link printed by `create` or `resend`
        #[arg(long)]
        link: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RoleName {
    Admin,
    ReadOnly,
}

impl RoleName {
    fn role(self) -> Role {
        match self {
            Self::Admin => Role::Admin,
            Self::ReadOnly => Role::ReadOnly,
        }
    }
}

pub(crate) async fn member(config: Config, command: MemberCommand) -> anyhow::Result<()> {
    let vault = open(config).await?;
    match command {
        MemberCommand::Add(add) => {
            let tenant = find_tenant(&vault, &add.tenant).await?;
            let new = NewMember {
                email: email(&add.email)?,
                role: match add.owner {
                    true => Role::Owner,
                    false => add.role.role(),
                },
                first_name: add.first_name,
                last_name: add.last_name,
            };
            let member = members::add(&vault, tenant.id, new).await?;
            print_result(
                &json!({"id": member.id}),
                &[format!("member {}", member.id)],
            );
        }
        MemberCommand::List { tenant } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            let members = members::all(&vault, tenant.id).await?;
            print_list(
                &members,
                |member| {
                    let (role, email) = (member.role.name(), member.user.email.as_str());
                    json!({"id": member.id, "role": role, "email": email})
                },
                |member| {
                    let (role, email) = (member.role.name(), member.user.email.as_str());
                    format!("{}  {role:9}  {email}", member.id)
                },
            );
        }
    }
    vault.audit.close().await;
    Ok(())
}

pub(crate) async fn invitation(config: Config, command: InvitationCommand) -> anyhow::Result<()> {
    let vault = open(config).await?;
    match command {
        InvitationCommand::Create {
            tenant,
            email: address,
            role,
        } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            let new = NewInvitation {
                email: email(&address)?,
                role: role.role(),
            };
            let (invitation, link) = members::invite_as_operator(&vault, tenant.id, &new).await?;
            print_link(tenant.id.uuid, invitation.id, &link);
        }
        InvitationCommand::List { tenant } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            let invitations = members::list_invitations_as_operator(&vault, tenant.id).await?;
            print_list(
                &invitations,
                |it| {
                    let (role, status) = (it.role.name(), it.status.name());
                    json!({"id": it.id, "role": role, "status": status, "email": it.email.as_str()})
                },
                |it| {
                    let (role, status) = (it.role.name(), it.status.name());
                    format!("{}  {role:9}  {status:7}  {}", it.id, it.email.as_str())
                },
            );
        }
        InvitationCommand::Resend { tenant, invitation } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            let (invitation, link) =
                members::resend_as_operator(&vault, tenant.id, invitation).await?;
            print_link(tenant.id.uuid, invitation.id, &link);
        }
        InvitationCommand::Accept { tenant, link } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            let member = members::accept(&vault, tenant.id, &link).await?;
            print_result(
                &json!({"id": member.id}),
                &[format!("member {}", member.id)],
            );
        }
    }
    vault.audit.close().await;
    Ok(())
}

fn email(text: &str) -> anyhow::Result<Email> {
    Email::parse(text).map_err(|rule| anyhow::anyhow!("--email {rule}"))
}

fn print_link(tenant: Uuid, id: Uuid, link: &InvitationLink) {
    let lines = [
        format!("invitation {id}"),
        format!("link {}", link.expose()),
        "this link is shown only once; it is valid for 72 hours".to_owned(),
        format!("next: `cloakroom invitation accept --tenant {tenant} --link LINK`"),
    ];
    print_result(&json!({"id": id, "link": link.expose()}), &lines);
}
