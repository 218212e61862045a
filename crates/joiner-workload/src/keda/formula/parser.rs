//! From pieces of text to a tree.

use super::FormulaError;
use super::functions::Function;
use super::operators::{Binary, Unary};
use super::tokens::{Token, tokens};
use super::tree::Node;
use super::value::Value;

/// Parts of a formula within one another.
const DEPTH_MAX: usize = 64;
/// How tightly operators with one value bind.
const NOT: u32 = 50;
const SIGN: u32 = 90;

pub(super) struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// Names that are values here.
    names: Vec<String>,
    /// Whether there is an element that a condition is about.
    n_closures: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn new(text: &str, names: &[&str]) -> Result<Self, FormulaError> {
        Ok(Self {
            tokens: tokens(text)?,
            at: 0,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            n_closures: 0,
            depth: 0,
        })
    }

    pub(super) fn whole(mut self) -> Result<Node, FormulaError> {
        let node = self.sequence()?;
        if *self.peek() == Token::End {
            return Ok(node);
        }
        Err(unexpected(self.peek()))
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    /// Takes a sign if it is the next piece.
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(next) if next == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), FormulaError> {
        if self.take(sign) {
            return Ok(());
        }
        let found = self.peek().shown();
        Err(FormulaError(format!(
            "there is {found} where {sign:?} should be"
        )))
    }

    /// Names with their values, and then what they are for.
    fn sequence(&mut self) -> Result<Node, FormulaError> {
        if !self.take_word("let") {
            return self.choice();
        }
        let Token::Name(name) = self.next() else {
            return Err(FormulaError("a name must follow let".to_owned()));
        };
        self.expect("=")?;
        let value = self.choice()?;
        self.expect(";")?;
        self.names.push(name.clone());
        let body = self.deeper(Self::sequence)?;
        self.names.pop();
        Ok(Node::Let(name, Box::new(value), Box::new(body)))
    }

    fn deeper(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Node, FormulaError>,
    ) -> Result<Node, FormulaError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let problem = "the formula is nested too deeply";
            return Err(FormulaError(problem.to_owned()));
        }
        let node = parse(self);
        self.depth -= 1;
        node
    }

    fn choice(&mut self) -> Result<Node, FormulaError> {
        self.deeper(|parser| {
            let mut node = parser.operators(0)?;
            while parser.take("|") {
                node = parser.piped(node)?;
            }
            if !parser.take("?") {
                return Ok(node);
            }
            let then = parser.choice()?;
            parser.expect(":")?;
            let otherwise = parser.choice()?;
            Ok(Node::Choice(Box::new([node, then, otherwise])))
        })
    }

    /// Operators that bind at least as tightly.
    fn operators(&mut self, least: u32) -> Result<Node, FormulaError> {
        let mut left = self.operand()?;
        loop {
            let negated = matches!(self.peek(), Token::Name(name) if name == "not")
                && matches!(self.tokens.get(self.at + 1), Some(Token::Name(name)) if name == "in");
            let found = match self.peek() {
                Token::Sign(sign) => Binary::of(sign),
                Token::Name(_) if negated => Some((Binary::NotIn, 20)),
                Token::Name(name) => Binary::of(name),
                Token::Int(_) | Token::Float(_) | Token::Text(_) | Token::End => None,
            };
            let Some((operator, binds)) = found.filter(|(_, binds)| *binds >= least) else {
                return Ok(left);
            };
            self.at += 1 + usize::from(negated);
            // Powers of powers are read from the right.
            let next = binds + u32::from(operator != Binary::Power);
            let right = self.deeper(|parser| parser.operators(next))?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn operand(&mut self) -> Result<Node, FormulaError> {
        let (operator, binds) = match self.peek() {
            Token::Sign("!") => (Unary::Not, NOT),
            Token::Name(name) if name == "not" => (Unary::Not, NOT),
            Token::Sign("-") => (Unary::Minus, SIGN),
            Token::Sign("+") => (Unary::Plus, SIGN),
            Token::Name(_)
            | Token::Int(_)
            | Token::Float(_)
            | Token::Text(_)
            | Token::Sign(_)
            | Token::End => return self.primary(),
        };
        self.at += 1;
        let node = self.deeper(|parser| parser.operators(binds))?;
        Ok(Node::Unary(operator, Box::new(node)))
    }

    fn primary(&mut self) -> Result<Node, FormulaError> {
        let mut node = match self.next() {
            Token::Int(number) => Node::Constant(Value::Int(number)),
            Token::Float(number) => Node::Constant(Value::Float(number)),
            Token::Text(text) => Node::Constant(Value::Text(text)),
            Token::Sign("(") => {
                let node = self.deeper(Self::sequence)?;
                self.expect(")")?;
                node
            }
            Token::Sign("[") => Node::List(self.items("]")?),
            Token::Name(name) => self.name(name)?,
            other @ (Token::Sign(_) | Token::End) => return Err(unexpected(&other)),
        };
        while self.take("[") {
            let index = self.choice()?;
            self.expect("]")?;
            node = Node::Index(Box::new(node), Box::new(index));
        }
        Ok(node)
    }

    fn items(&mut self, end: &str) -> Result<Vec<Node>, FormulaError> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.choice()?);
            if !self.take(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn name(&mut self, name: String) -> Result<Node, FormulaError> {
        match name.as_str() {
            "true" => return Ok(Node::Constant(Value::Bool(true))),
            "false" => return Ok(Node::Constant(Value::Bool(false))),
            "nil" => return Ok(Node::Constant(Value::Nothing)),
            "#" if self.n_closures > 0 => return Ok(Node::Element),
            "#" => {
                let problem = "# stands for an element, in a condition such as {# > 1}";
                return Err(FormulaError(problem.to_owned()));
            }
            _ => {}
        }
        if self.take("(") {
            let function = function(&name)?;
            return self.call(function, Vec::new());
        }
        if self.names.contains(&name) {
            return Ok(Node::Name(name));
        }
        let known = self.names.join(", ");
        Err(FormulaError(format!(
            "{name:?} is no name of a trigger; there are: {known}"
        )))
    }

    fn piped(&mut self, first: Node) -> Result<Node, FormulaError> {
        let Token::Name(name) = self.next() else {
            return Err(FormulaError("a function must follow |".to_owned()));
        };
        self.expect("(")?;
        self.call(function(&name)?, vec![first])
    }

    /// The rest of a call, after its opening parenthesis.
    fn call(&mut self, function: Function, mut arguments: Vec<Node>) -> Result<Node, FormulaError> {
        while !self.take(")") {
            if function.takes_condition() && arguments.len() == 1 {
                self.n_closures += 1;
                let braces = self.take("{");
                let node = self.choice()?;
                if braces {
                    self.expect("}")?;
                }
                self.n_closures -= 1;
                arguments.push(node);
            } else {
                arguments.push(self.choice()?);
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        function.check(arguments.len())?;
        Ok(Node::Call(function, arguments))
    }
}

fn function(name: &str) -> Result<Function, FormulaError> {
    Function::of(name).ok_or_else(|| FormulaError(format!("{name:?} is no function")))
}

fn unexpected(token: &Token) -> FormulaError {
    FormulaError(format!("{} does not belong there", token.shown()))
}
