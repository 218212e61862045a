//! CEL rules: compiled once with the schema, run with `self` and `oldSelf` bound.
//!
//! The functions are those of kube-cel; `matches` and `find` are replaced by versions that keep
//! their compiled expressions, since rules use the same few patterns for every object.

use super::node::{Format, Kind, Node};
use super::pattern::compile_go;
use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use regex::Regex;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Patterns kept per thread; past that they are compiled anew each time.
const PATTERNS_MAX: usize = 256;

/// One rule of `x-kubernetes-validations`.
pub(super) struct Rule {
    program: Program,
    text: String,
    message: Option<String>,
    message_program: Option<Program>,
    field_path: Option<String>,
    optional_old: bool,
    pub(super) is_transition: bool,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// A rule that did not hold.
pub(super) struct Broken {
    pub(super) message: String,
    /// Path below the value the rule sits on, starting with a dot.
    pub(super) field_path: Option<String>,
}

impl Rule {
    pub(super) fn compile(raw: &Value) -> Result<Self, String> {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
        let program = |source: &str| {
            Program::compile(source).map_err(|e| format!("the rule {source:?} is not CEL: {e}"))
        };
        let source = text("rule").ok_or("a rule has no text")?;
        let compiled = program(&source)?;
        let message_program = text("messageExpression").map(|m| program(&m)).transpose()?;
        Ok(Self {
            is_transition: compiled.references().has_variable("oldSelf"),
            program: compiled,
            message: text("message"),
            message_program,
            field_path: text("fieldPath"),
            optional_old: raw
                .get("optionalOldSelf")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            text: source,
        })
    }

    fn run(&self, scope: &Context<'_>) -> Option<Broken> {
        let failure = match self.program.execute(scope) {
            Ok(Cel::Bool(true)) => return None,
            Ok(Cel::Bool(false)) => None,
            Ok(_) => Some("the rule is not a yes-or-no question".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        Some(Broken {
            message: self.words(scope, failure),
            field_path: self.field_path.clone(),
        })
    }

    fn words(&self, scope: &Context<'_>, failure: Option<String>) -> String {
        if let Some(program) = &self.message_program
            && let Ok(Cel::String(message)) = program.execute(scope)
        {
            return (*message).clone();
        }
        match (&self.message, failure) {
            (Some(message), _) => message.clone(),
            (None, Some(failure)) => format!("cannot check the rule {}: {failure}", self.text),
            (None, None) => format!("breaks the rule {}", self.text),
        }
    }
}

/// Runs the rules of one value.
pub(super) fn run(node: &Node, value: &Value, old: Option<&Value>) -> Vec<Broken> {
    CONTEXT.with(|context| {
        let mut scope = context.new_inner_scope();
        scope.add_variable_from_value("self", to_cel(node, value));
        let old = if node.rules.iter().any(|rule| rule.is_transition) {
            old.map(|old| to_cel(node, old))
        } else {
            None
        };
        if let Some(old) = &old {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        let run = |rule: &Rule| {
            if !rule.is_transition {
                return rule.run(&scope);
            }
            if rule.optional_old {
                let wrapped = match &old {
                    Some(old) => OptionalValue::of(old.clone()),
                    None => OptionalValue::none(),
                };
                let mut inner = scope.new_inner_scope();
                inner.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(wrapped)));
                return rule.run(&inner);
            }
            old.as_ref().and_then(|_| rule.run(&scope))
        };
        node.rules.iter().filter_map(run).collect()
    })
}

thread_local! {
    static CONTEXT: Context<'static> = context();
    static PATTERNS: RefCell<BTreeMap<String, Regex>> = const { RefCell::new(BTreeMap::new()) };
}

fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("matches", matches);
    context.add_function("find", find);
    context
}

fn matches(This(this): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    with_pattern("matches", &pattern, |regex| regex.is_match(&this))
}

fn find(This(this): This<Arc<String>>, pattern: Arc<String>) -> Result<Cel, ExecutionError> {
    with_pattern("find", &pattern, |regex| {
        let found = regex.find(&this).map_or("", |found| found.as_str());
        Cel::String(Arc::new(found.to_owned()))
    })
}

fn with_pattern<T>(
    function: &str,
    pattern: &str,
    use_it: impl FnOnce(&Regex) -> T,
) -> Result<T, ExecutionError> {
    let compile =
        || compile_go(pattern).map_err(|error| ExecutionError::function_error(function, error));
    PATTERNS.with_borrow_mut(|patterns| {
        if let Some(regex) = patterns.get(pattern) {
            return Ok(use_it(regex));
        }
        let regex = compile()?;
        let answer = use_it(&regex);
        if patterns.len() < PATTERNS_MAX {
            patterns.insert(pattern.to_owned(), regex);
        }
        Ok(answer)
    })
}

/// A value as rules see it: declared fields under escaped names, map keys as they are, unknown
/// fields left out.
fn to_cel(node: &Node, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) if node.kind != Kind::Number => Cel::Int(int),
            (None, Some(uint)) if node.kind != Kind::Number => Cel::UInt(uint),
            _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text_to_cel(node, text),
        Value::Array(list) => {
            let items = node.items.as_deref();
            let convert = |item| items.map_or_else(|| plain(item), |node| to_cel(node, item));
            Cel::List(Arc::new(list.iter().map(convert).collect()))
        }
        Value::Object(map) => {
            let is_map = node.is_map();
            let mut entries = HashMap::with_capacity(map.len());
            for (key, entry) in map {
                let converted = match node.entry(key) {
                    Some(child) => to_cel(child, entry),
                    None if is_map || node.embedded => plain(entry),
                    None => continue,
                };
                let name = if is_map { key.clone() } else { escape(key) };
                entries.insert(Key::String(Arc::new(name)), converted);
            }
            Cel::Map(Map {
                map: Arc::new(entries),
            })
        }
    }
}

/// Conversion where no schema says otherwise.
fn plain(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Cel::Int(int),
            (None, Some(uint)) => Cel::UInt(uint),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(list) => Cel::List(Arc::new(list.iter().map(plain).collect())),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                (Key::String(Arc::new(key.clone())), plain(value))
            };
            Cel::Map(Map {
                map: Arc::new(map.iter().map(entry).collect()),
            })
        }
    }
}

/// Times and durations become CEL's own kinds; what cannot be read stays text.
fn text_to_cel(node: &Node, text: &str) -> Cel {
    let value = Cel::String(Arc::new(text.to_owned()));
    let source = match node.format {
        Format::DateTime => "timestamp(text)",
        Format::Duration => "duration(text)",
        Format::None | Format::Int32 => return value,
    };
    let Ok(program) = Program::compile(source) else {
        return value;
    };
    CONTEXT.with(|context| {
        let mut scope = context.new_inner_scope();
        scope.add_variable_from_value("text", value.clone());
        program.execute(&scope).unwrap_or(value)
    })
}

/// Words that CEL keeps for itself.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name under which a rule finds a field.
fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return name.to_owned();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
