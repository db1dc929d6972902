//! [`Syntax`]: a command's arguments as COMMAND DOCS describes them, and what of them has to be shown.

use serde_json::Value;

/// The arguments of one command.
#[derive(Clone, Debug, Default)]
pub struct Syntax {
    /// The arguments in their order.
    pub(super) nodes: Vec<Node>,
    /// Whether COMMAND DOCS says nothing of arguments that the command takes all the same.
    pub(super) open: bool,
}

/// One argument.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its number within the command.
    pub(super) id: usize,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) token: Option<String>,
    pub(super) optional: bool,
    pub(super) multiple: bool,
    /// Whether each repetition has the token in front of it.
    pub(super) multiple_token: bool,
    /// What tells the argument from others of the command: its token and value, behind the token that it depends on.
    label: String,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Token,
    Key,
    Number,
    Text,
    OneOf(Vec<Node>),
    Block(Vec<Node>),
}

/// One way to use a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Usage {
    /// The command itself.
    Called,
    /// An argument that need not be there, or a branch of several, is there.
    Given(usize),
    /// An argument is there more than once.
    Repeated(usize),
    /// An argument that may be left out is.
    LeftOut(usize),
}

/// A way to use a command that has to be shown, with its name in reports.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What a walk finds.
    pub usage: Usage,
    /// What it is called: `EX seconds`, `key ...`, `without [count]`.
    pub label: String,
}

impl Syntax {
    /// Reads the `arguments` of COMMAND DOCS. Errors: an argument of a type that is not known.
    pub fn parse(arguments: &Value, arity: i64) -> Result<Syntax, String> {
        let nodes = Reader::default().list(arguments, "")?;
        let open = nodes.is_empty() && arity < 0;
        Ok(Syntax { nodes, open })
    }

    /// All that has to be shown, in the order of the arguments.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = vec![Choice {
            usage: Usage::Called,
            label: String::new(),
        }];
        collect(&self.nodes, false, &mut choices);
        choices
    }

    /// The syntax with one of its tokens such that no request has it, for a test of the checker.
    #[must_use]
    pub fn with_lost_token(mut self, token: &str) -> Syntax {
        lose_token(&mut self.nodes, token);
        self
    }
}

impl Node {
    /// Whether the argument can come in any order among its like: it may be left out, and its first word says what it is.
    pub(super) fn is_free(&self) -> bool {
        self.optional && self.begins_with_token()
    }

    pub(super) fn begins_with_token(&self) -> bool {
        match &self.kind {
            _ if self.token.is_some() => true,
            Kind::OneOf(branches) => branches.iter().all(Node::begins_with_token),
            Kind::Block(nodes) => nodes
                .first()
                .is_some_and(|node| !node.optional && node.begins_with_token()),
            Kind::Token | Kind::Key | Kind::Number | Kind::Text => false,
        }
    }
}

#[derive(Default)]
struct Reader {
    next_id: usize,
}

impl Reader {
    /// Arguments side by side, all behind the words `owner`.
    fn list(&mut self, arguments: &Value, owner: &str) -> Result<Vec<Node>, String> {
        let arguments = arguments.as_array().map_or(&[][..], Vec::as_slice);
        arguments
            .iter()
            .map(|argument| self.node(argument, owner))
            .collect()
    }

    /// A block's arguments: what follows a token inside of it belongs to that token, as a unit to `BYBOX width height`.
    fn block(&mut self, arguments: &Value, owner: &str) -> Result<Vec<Node>, String> {
        let mut owner = owner.to_owned();
        let mut nodes = Vec::new();
        for argument in arguments.as_array().map_or(&[][..], Vec::as_slice) {
            let node = self.node(argument, &owner)?;
            if let (Some(token), true) = (&node.token, nodes.is_empty() && !node.optional) {
                owner = join(&owner, token);
            }
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn node(&mut self, argument: &Value, owner: &str) -> Result<Node, String> {
        let text = |field: &str| argument[field].as_str().unwrap_or_default();
        let flag = |name: &str| {
            let flags = argument["flags"].as_array();
            flags.is_some_and(|flags| flags.iter().any(|flag| flag == name))
        };
        let id = self.next_id;
        self.next_id += 1;
        let token = argument["token"].as_str().map(str::to_owned);
        let inner = join(owner, token.as_deref().unwrap_or_default());
        let arguments = &argument["arguments"];
        let kind = match text("type") {
            "pure-token" => Kind::Token,
            "key" => Kind::Key,
            "integer" | "double" | "unix-time" => Kind::Number,
            "string" | "pattern" => Kind::Text,
            "block" => Kind::Block(self.block(arguments, &inner)?),
            "oneof" => {
                let mut branches = self.list(arguments, &inner)?;
                // Some are documented as optional, which says nothing of a branch.
                for branch in &mut branches {
                    branch.optional = false;
                }
                branches.sort_by_key(|branch| !branch.begins_with_token());
                Kind::OneOf(branches)
            }
            other => return Err(format!("no such type of an argument as {other:?}")),
        };
        let mut node = Node {
            id,
            kind,
            name: text("name").to_owned(),
            token,
            optional: flag("optional"),
            multiple: flag("multiple"),
            multiple_token: flag("multiple_token"),
            label: String::new(),
        };
        let shown = shown(&node);
        let bracketed = node.optional && node.token.is_none();
        node.label = if bracketed {
            join(owner, &format!("[{shown}]"))
        } else {
            join(owner, &shown)
        };
        Ok(node)
    }
}

fn join(owner: &str, word: &str) -> String {
    match (owner, word) {
        ("", word) => word.to_owned(),
        (owner, "") => owner.to_owned(),
        (owner, word) => format!("{owner} {word}"),
    }
}

/// An argument as a line of documentation shows it.
fn shown(node: &Node) -> String {
    let list = |nodes: &[Node], between: &str| -> String {
        let nodes = nodes.iter().map(|node| match (node.optional, shown(node)) {
            (true, text) => format!("[{text}]"),
            (false, text) => text,
        });
        nodes.collect::<Vec<_>>().join(between)
    };
    let value = match &node.kind {
        // The empty word of MIGRATE.
        Kind::Token if node.token.as_deref() == Some("") => "\"\"".to_owned(),
        Kind::Token => String::new(),
        Kind::Key | Kind::Number | Kind::Text => node.name.clone(),
        Kind::OneOf(branches) => list(branches, "|"),
        Kind::Block(nodes) => list(nodes, " "),
    };
    join(node.token.as_deref().unwrap_or_default(), &value)
}

fn collect(nodes: &[Node], branches: bool, choices: &mut Vec<Choice>) {
    for node in nodes {
        let mut add = |usage, label| choices.push(Choice { usage, label });
        // Of a choice its branches say it all.
        if (branches || node.optional) && !matches!(node.kind, Kind::OneOf(_)) {
            add(Usage::Given(node.id), node.label.clone());
        }
        if node.multiple {
            add(Usage::Repeated(node.id), format!("{} ...", node.label));
        }
        if node.optional {
            add(Usage::LeftOut(node.id), format!("without {}", node.label));
        }
        match &node.kind {
            Kind::OneOf(branches) => collect(branches, true, choices),
            Kind::Block(nodes) => collect(nodes, false, choices),
            Kind::Token | Kind::Key | Kind::Number | Kind::Text => {}
        }
    }
}

fn lose_token(nodes: &mut [Node], token: &str) {
    for node in nodes {
        if node.token.as_deref() == Some(token) {
            node.token = Some("\0".to_owned());
        }
        match &mut node.kind {
            Kind::OneOf(nodes) | Kind::Block(nodes) => lose_token(nodes, token),
            Kind::Token | Kind::Key | Kind::Number | Kind::Text => {}
        }
    }
}
