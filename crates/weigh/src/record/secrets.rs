//! Command lines without the secrets in them.
//!
//! What looks like a secret is guessed from its name (`--api-key abc`, `PGPASSWORD=…`,
//! `Authorization: …`), from its form (`https://user:password@host`, tokens that services mark as
//! theirs) and from where a few programs take it (`mysql -pabc`, `curl -u me:abc`). A guess misses
//! some: `--no-cmdline` leaves command lines out altogether.

use super::events::text;

const HIDDEN: &str = "***";

/// A command line as text: bytes that are not are shown as `\xNN`, secrets as `***`.
pub fn command<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<String> {
    let program = arguments.first().map(|first| text(first.as_ref())).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut next = Next::Anything;
    let shown = arguments.iter().map(|argument| {
        let argument = text(argument.as_ref());
        match std::mem::replace(&mut next, Next::of(&argument)) {
            Next::Secret if !argument.starts_with('-') => HIDDEN.to_owned(),
            Next::User => without_password_of_user(argument),
            _ => hidden(program, argument),
        }
    });
    shown.collect()
}

/// What comes behind an option.
enum Next {
    Anything,
    Secret,
    /// A user, perhaps with a password behind a colon.
    User,
}

impl Next {
    fn of(option: &str) -> Next {
        match option {
            "-u" | "--user" | "--proxy-user" => Next::User,
            _ if !option.starts_with('-') || option.contains('=') => Next::Anything,
            _ if sounds_secret(option) => Next::Secret,
            _ => Next::Anything,
        }
    }
}

fn hidden(program: &str, argument: String) -> String {
    let takes_it_at_once = ["mysql", "mariadb"].iter().any(|name| program.starts_with(name));
    if takes_it_at_once && argument.starts_with("-p") && argument.len() > 2 {
        return format!("-p{HIDDEN}");
    }
    if is_token(&argument) {
        return HIDDEN.to_owned();
    }
    match argument.split_once(['=', ':']) {
        Some((name, value)) if sounds_secret(name) || is_token(value) => {
            // With the sign, and the space that stands behind it in the head of a request.
            let kept = argument.len() - value.trim_start().len();
            format!("{}{HIDDEN}", &argument[..kept])
        }
        _ => without_password(argument),
    }
}

/// Whether something of this name should not be written down.
fn sounds_secret(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "accesskey",
        "credential",
        "authorization",
        "cookie",
    ];
    // A sentence, or a part of a program, is no name.
    if name.contains(|c: char| c.is_whitespace() || "({;".contains(c)) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    // Tokens of a text, and who cuts it into them, are no secrets.
    WORDS.iter().any(|word| joined.contains(word)) || parts.any(|part| part.ends_with("token"))
}

/// Whether it is a token that its service marks as one.
fn is_token(word: &str) -> bool {
    let word = word.trim_start();
    const MARKS: [&str; 10] =
        ["ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "hf_", "sk-", "xoxb-", "xoxp-", "AKIA"];
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let mut rests = MARKS.iter().filter_map(|mark| word.strip_prefix(mark));
    rests.any(|rest| rest.len() >= 16 && rest.chars().all(is_letter))
}

/// `user:password` without the password; numbers are those of a user and a group.
fn without_password_of_user(argument: String) -> String {
    match argument.split_once(':') {
        Some((user, word)) if !word.is_empty() && word.parse::<u32>().is_err() => {
            format!("{user}:{HIDDEN}")
        }
        _ => argument,
    }
}

/// `https://user:password@host` without the password.
fn without_password(argument: String) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else { return argument };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?.0, host)))
    {
        Some((user, host)) => {
            format!("{scheme}://{user}:{HIDDEN}@{host}{}", &rest[authority.len()..])
        }
        None => argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> String {
        command(words).join(" ")
    }

    #[test]
    fn what_has_the_name_of_a_secret_is_hidden() {
        let shown = |line: &str| shown(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(shown("psql --password=hunter2 db"), "psql --password=*** db");
        assert_eq!(shown("app --api-key abc --fast"), "app --api-key *** --fast");
        assert_eq!(shown("AWS_SECRET_ACCESS_KEY=abc"), "AWS_SECRET_ACCESS_KEY=***");
        assert_eq!(shown("app --hf-token abc --x"), "app --hf-token *** --x");
        assert_eq!(shown("app --token --fast"), "app --token --fast", "an option is no value");
    }

    #[test]
    fn heads_of_requests_keep_their_name_alone() {
        let asked =
            ["curl", "-H", "Authorization: Bearer abc", "-H", "X-Api-Key:abc", "-b", "Cookie: a=b"];
        assert_eq!(shown(&asked), "curl -H Authorization: *** -H X-Api-Key:*** -b Cookie: ***");
        assert_eq!(shown(&["curl", "-H", "Accept: text/html"]), "curl -H Accept: text/html");
    }

    #[test]
    fn passwords_of_users_are_hidden_and_numbers_are_no_passwords() {
        assert_eq!(shown(&["curl", "-u", "me:pw", "https://host"]), "curl -u me:*** https://host");
        assert_eq!(shown(&["docker", "run", "-u", "1000:1000"]), "docker run -u 1000:1000");
        assert_eq!(shown(&["sudo", "-u", "postgres", "psql"]), "sudo -u postgres psql");
        assert_eq!(
            shown(&["git", "clone", "https://me:pw@host/x"]),
            "git clone https://me:***@host/x"
        );
        assert_eq!(shown(&["/usr/bin/mysql", "-phunter2", "db"]), "/usr/bin/mysql -p*** db");
        assert_eq!(shown(&["make", "-pn"]), "make -pn");
    }

    #[test]
    fn tokens_are_known_by_their_marks() {
        let token = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(shown(&["gh", &token]), "gh ***");
        assert_eq!(shown(&["run", &format!("KEY={token}")]), "run KEY=***");
        assert_eq!(shown(&["train", "hf_hub", "sk-learn"]), "train hf_hub sk-learn");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for line in [
            "train --tokens-per-batch 512",
            "train --tokenizer bert",
            "train --epochs=3 -v",
            "python3 -c print(token:=1)",
            "sh -c x=1; echo $password: y",
            "see https://host/token",
        ] {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            assert_eq!(shown(&words), line);
        }
    }
}
