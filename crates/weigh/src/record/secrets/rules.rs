//! The table of rules: what a secret looks like, with an example and what looks alike.
//!
//! The secret of an example stands in ⟦ ⟧. A test walks the table: of every example the secret
//! is masked, every other command line stays as it is. A new form is a line here.

use super::scan;

/// A rule, and command lines that show it.
pub(super) struct SecretRule {
    pub(super) finds: Finds,
    /// Command lines as one would type them, the secret in ⟦ ⟧.
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for readers and the test"))]
    pub(super) masked: &'static [&'static str],
    /// Command lines that look alike and hold none.
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for readers and the test"))]
    pub(super) unchanged: &'static [&'static str],
}

/// What a rule goes by.
pub(super) enum Finds {
    /// The name of an option, a variable, a header or a field.
    Name(NameRule),
    /// The first letters of a token, and how many must follow.
    Token { marks: &'static [&'static str], at_least: usize },
    /// A form that a text shows by itself.
    Text(FindsText),
    /// An option of a program.
    Option(OptionRule),
    /// Programs that run another one, whose name is among their arguments.
    Runner(&'static [&'static str]),
}

/// Finds secrets in a text.
pub(super) type FindsText = fn(&super::ScannedWord, &mut super::FoundSecret);

/// A name whose values are secrets.
pub(super) struct NameRule {
    pub(super) spelled: Spelled,
    pub(super) places: &'static [SecretPlace],
    /// Values of that name that are no secrets.
    pub(super) ordinary: fn(&str) -> bool,
    /// A header: without quotes its value is the rest of the line.
    pub(super) to_line_end: bool,
}

/// How a name must be spelled; without signs, in small letters.
pub(super) enum Spelled {
    /// One of these is somewhere in it.
    Within(&'static [&'static str]),
    /// One of its words ends like this, and none is one of those.
    PartEnds(&'static str, &'static [&'static str]),
    /// Its last word ends with one of these, and is none of those.
    LastEnds(&'static [&'static str], &'static [&'static str]),
    /// Its last word is one of these.
    Last(&'static [&'static str]),
}

/// Where a name stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SecretPlace {
    /// `--name S`, `-name=S`
    Option,
    /// `A_NAME=S`, `a.name=S`
    Variable,
    /// `?name=S`, `&name=S`, `"name": "S"`
    Query,
    /// `name=S`, `name: S`
    Pair { is_colon: bool },
}

/// An option that takes a secret.
pub(super) struct OptionRule {
    /// Programs it is an option of; none for every program.
    pub(super) programs: &'static [&'static str],
    /// Programs it means something else to.
    pub(super) not: &'static [&'static str],
    /// The option; empty for an argument that is none.
    pub(super) option: &'static str,
    pub(super) takes: Takes,
    pub(super) value: SecretValue,
    /// Only of the program's command `login`.
    pub(super) behind_login: bool,
}

/// Where the value of an option is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Takes {
    Next,
    Joined,
    Both,
    /// In the next word, the option being the last of several letters: `-sSLu`.
    Bundled,
}

/// What of the value is the secret.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SecretValue {
    All,
    /// What is behind this sign and the user: `me:S`.
    User(char),
    /// What is behind the first name, if there are names and values: `sid=S`; else it is a file.
    Pairs,
    /// `me/S@database`
    Login,
}

const ANYWHERE: &[SecretPlace] = &[
    SecretPlace::Option,
    SecretPlace::Variable,
    SecretPlace::Query,
    SecretPlace::Pair { is_colon: false },
    SecretPlace::Pair { is_colon: true },
];
/// Where a name that means many things is that of a secret.
const NAMED: &[SecretPlace] = &[SecretPlace::Option, SecretPlace::Variable, SecretPlace::Query];
const NAMED_OR_SET: &[SecretPlace] = &[
    SecretPlace::Option,
    SecretPlace::Variable,
    SecretPlace::Query,
    SecretPlace::Pair { is_colon: false },
];

const fn name(
    spelled: Spelled,
    places: &'static [SecretPlace],
    ordinary: fn(&str) -> bool,
) -> Finds {
    Finds::Name(NameRule { spelled, places, ordinary, to_line_end: false })
}

const fn option(
    programs: &'static [&'static str],
    option: &'static str,
    takes: Takes,
    value: SecretValue,
) -> Finds {
    Finds::Option(OptionRule { programs, not: &[], option, takes, value, behind_login: false })
}

/// Every rule.
pub(super) const RULES: &[SecretRule] = &[
    SecretRule {
        finds: Finds::Name(NameRule {
            spelled: Spelled::Within(&["authorization", "cookie"]),
            places: ANYWHERE,
            ordinary: |_| false,
            to_line_end: true,
        }),
        masked: &[
            "curl -H 'Authorization: Bearer ⟦hunter2Zx⟧'",
            "curl '--header=Authorization: Basic ⟦aHVudGVyMlp4⟧'",
            "curl '-HAuthorization: token ⟦hunter2Zx⟧'",
            "sh -c \"curl -H 'Authorization: Bearer ⟦hunter2Zx⟧' https://host\"",
            "sh -c 'curl -H \"Cookie: sid=⟦hunter2Zx⟧; a=⟦hunter2Zx⟧\" https://host'",
            "python3 -c 'get(u, headers={\"Authorization\": \"Basic ⟦hunter2Zx⟧\"})'",
            "wget '--header=Cookie: sid=⟦hunter2Zx⟧'",
        ],
        unchanged: &["curl -H 'Accept: text/html'", "curl --cookie-jar cookies.txt https://host"],
    },
    SecretRule {
        finds: name(
            Spelled::Within(&[
                "password",
                "passwd",
                "passphrase",
                "apikey",
                "accesskey",
                "privatekey",
                "accountkey",
                "encryptionkey",
                "signingkey",
            ]),
            ANYWHERE,
            is_source,
        ),
        masked: &[
            "psql --password=⟦hunter2Zx⟧ db",
            "app --db-password '⟦hunter2Zx with blanks⟧' --fast",
            "app --password ⟦-Hunter2-Zx⟧ --fast",
            "app --password=⟦-hunter2⟧",
            "app --dbPassword ⟦hunter2Zx⟧",
            "app --api-key ⟦hunter2Zx⟧ --fast",
            "helm upgrade --set=db.password=⟦hunter2Zx⟧ chart",
            "helm upgrade --set db.password=⟦hunter2Zx⟧,tag=3 chart",
            "java -Ddb.password=⟦hunter2Zx⟧ App",
            "kubectl create secret generic x --from-literal=password=⟦hunter2Zx⟧",
            "docker run -e DB_PASSWORD=⟦hunter2Zx⟧ image",
            "docker run -eDB_PASSWORD=⟦hunter2Zx⟧ image",
            "env 'DB_PASSWORD=⟦hunter2Zx and⟧⟦ more⟧' app",
            "sh -c 'app --password ⟦hunter2Zx⟧'",
            "sh -c \"app --password '⟦hunter2Zx and more⟧'; echo done\"",
            "bash -lc 'PGPASSWORD=⟦hunter2Zx⟧ psql db'",
            "ssh host \"sh -c 'app --password ⟦hunter2Zx⟧'\"",
            "psql 'host=h password=⟦hunter2Zx⟧ dbname=d'",
            "sqlcmd 'Server=h;User Id=sa;Password=⟦hunter2Zx⟧;Encrypt=no'",
            "mount -o username=me,password=⟦hunter2Zx⟧ //host/share /mnt",
            "curl -d 'user=a&password=⟦hunter2Zx⟧' https://host",
            "curl -d '{\"user\":\"a\",\"password\":\"⟦hunter2Zx⟧\"}' https://host",
            "sh -c 'curl -d \"{\\\"password\\\": \\\"⟦hunter2Zx⟧\\\"}\" https://host'",
            "curl 'https://host/x?user=a&api_key=⟦hunter2Zx⟧&page=2'",
            "curl -H X-Api-Key:⟦hunter2Zx⟧ https://host",
            "python3 -c 'connect(password=\"⟦hunter2Zx⟧\")'",
            "python3 -c 'os.environ[\"API_KEY\"] = \"⟦hunter2Zx⟧\"'",
            "app --password ⟦--Hunter2-Zx⟧",
            "az storage 'AccountName=a;AccountKey=⟦hunter2Zx==⟧;Suffix=x'",
            "xfreerdp /v:host /u:me /password:⟦hunter2Zx⟧",
            "gpg --batch --passphrase ⟦hunter2Zx⟧ -d file",
        ],
        unchanged: &[
            "app --password-file /run/secrets/db",
            "app --passwordfile=/run/secrets/db",
            "env PGPASSFILE=/home/me/.pgpass psql",
            "docker login --password-stdin",
            "ansible-playbook --ask-become-password site.yml",
            "app --no-password --fast",
            "app --password --fast",
            "psql --password -h host",
            "sh -c 'x=1; echo $password: y'",
            "docker run -v /etc/passwd:/etc/passwd:ro image",
            "grep -c password /etc/services",
            "openssl rsa --passphrase env:PHRASE",
        ],
    },
    SecretRule {
        finds: name(Spelled::Within(&["secret", "credential"]), ANYWHERE, |value| {
            value.starts_with("id=")
                || value.starts_with("type=")
                || value.starts_with("source=")
                || (value.starts_with(['/', '.', '~']) && has_extension(value))
        }),
        masked: &[
            "env AWS_SECRET_ACCESS_KEY=⟦hunter2Zx⟧ aws s3 ls",
            "app --client-secret ⟦hunter2Zx⟧",
            "aws configure set aws_secret_access_key ⟦hunter2Zx⟧",
            "vault write auth/approle/login role_id=r secret_id=⟦hunter2Zx⟧",
            "app --clientSecret=⟦hunter2Zx⟧",
        ],
        unchanged: &[
            "docker build --secret id=npm,src=npmrc .",
            "kubectl get secret",
            "app --secret-name db",
            "env GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json app",
            "git config credential.helper store",
            "docker run -v /run/secret:/run/secret image",
        ],
    },
    SecretRule {
        finds: name(
            Spelled::PartEnds(
                "token",
                &[
                    "pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "stop", "start",
                    "end", "per", "max", "min", "num", "next", "first", "last", "image", "new",
                ],
            ),
            ANYWHERE,
            |_| false,
        ),
        masked: &[
            "app --hf-token ⟦hunter2Zx⟧ --x",
            "app --token=⟦hunter2Zx⟧",
            "sh -c 'app --token=⟦hunter2Zx⟧'",
            "sh -c 'export X_TOKEN=⟦hunter2Zx⟧; app'",
            "curl 'https://host/x?token=⟦hunter2Zx⟧'",
            "curl 'https://host/x?a=1&access_token=⟦hunter2Zx⟧#top'",
            "npm config set //registry.example/:_authToken=⟦hunter2Zx⟧",
            "npm config set //registry.example/:_authToken ⟦hunter2Zx⟧",
            "curl -H 'X-Auth-Token: ⟦hunter2Zx⟧' https://host",
        ],
        unchanged: &[
            "git commit -m 'token handling'",
            "app --token-file path",
            "app --token --fast",
            "train --tokens-per-batch 512 --max-tokens=100",
            "train --max-token 512 --eos-token '</s>'",
            "train --tokenizer bert --tokenizer=bert",
            "python3 -c 'print(token:=1)'",
            "see https://host/token",
        ],
    },
    SecretRule {
        finds: name(Spelled::LastEnds(&["bearer", "jwt", "otp"], &[]), NAMED_OR_SET, |value| {
            is_source(value)
        }),
        masked: &[
            "curl --oauth2-bearer ⟦hunter2Zx⟧ https://host",
            "app --bearer ⟦hunter2Zx⟧",
            "app --jwt=⟦hunter2Zx⟧",
            "app --otp ⟦123456⟧",
        ],
        unchanged: &["app --jwt-issuer host", "app --bearer-file path"],
    },
    SecretRule {
        finds: name(
            Spelled::LastEnds(
                &["pass", "passin", "passout"],
                &[
                    "bypass",
                    "compass",
                    "lowpass",
                    "highpass",
                    "bandpass",
                    "allpass",
                    "onepass",
                    "twopass",
                    "multipass",
                    "overpass",
                    "underpass",
                ],
            ),
            NAMED_OR_SET,
            |value| is_count(value) || is_source(value),
        ),
        masked: &[
            "app --pass ⟦hunter2Zx⟧",
            "app --db-pass=⟦hunter2Zx⟧",
            "env DB_PASS=⟦hunter2Zx⟧ app",
            "env PGPASS=⟦hunter2Zx⟧ psql",
            "openssl rsa -passin ⟦pass:hunter2Zx⟧ -in key.pem",
            "openssl enc -pass ⟦pass:hunter2Zx⟧",
            "keytool -storepass ⟦hunter2Zx⟧ -list",
            "mongo 'user=a pass=⟦hunter2Zx⟧'",
        ],
        unchanged: &[
            "ffmpeg -i in.mp4 -pass 2 out.mp4",
            "x264 --pass=1 in.y4m",
            "openssl rsa -passin env:PHRASE -passout file:phrase",
            "app --bypass=cache",
            "ffmpeg -af lowpass=f=3000 in.wav",
            "ansible-playbook --ask-pass site.yml",
            "pytest -k 'pass: all'",
        ],
    },
    SecretRule {
        finds: name(Spelled::Last(&["pwd", "pw", "passw", "psk"]), NAMED_OR_SET, |value| {
            value.starts_with('/')
        }),
        masked: &[
            "app --pwd=⟦hunter2Zx⟧",
            "env MYSQL_PWD=⟦hunter2Zx⟧ mysqlish",
            "plink -pw ⟦hunter2Zx⟧ host",
            "isql 'DRIVER=x;UID=sa;PWD=⟦hunter2Zx⟧;'",
        ],
        unchanged: &["env PWD=/home/me OLDPWD=/tmp app", "sh -c 'cd /x; pwd'"],
    },
    SecretRule {
        finds: name(Spelled::Last(&["auth", "sig", "signature"]), NAMED, |value| {
            is_auth_method(value) || is_file(value)
        }),
        masked: &[
            "app --auth ⟦hunter2Zx⟧",
            "http --auth=⟦me:hunter2Zx⟧ host",
            "npm config set _auth=⟦hunter2Zx⟧",
            "azcopy cp 'https://a.blob/x?sv=1&sig=⟦hunter2Zx⟧&se=2' .",
        ],
        unchanged: &[
            "curl --proxy-auth basic host",
            "initdb --auth=scram-sha-256",
            "app --auth=basic",
            "app --auth",
            "gpg --verify file.sig file",
        ],
    },
    SecretRule {
        finds: name(Spelled::Last(&["key"]), NAMED, is_plain_key),
        masked: &[
            "app --key=⟦hunter2Zx⟧",
            "app --license-key ⟦AB12-CD34⟧",
            "env DATA_KEY=⟦hunter2Zx⟧ app",
            "curl 'https://host/x?key=⟦hunter2Zx⟧'",
        ],
        unchanged: &[
            "sort --key=2 file",
            "sort --key=2,2n -k 3 file",
            "curl --key client.pem --cert client.crt https://host",
            "app --key=value --sort-key user_id",
            "app --key /etc/ssl/private/x",
            "app --public-key ABC123",
            "jq --arg key value .",
        ],
    },
    SecretRule {
        finds: Finds::Text(scan::urls),
        masked: &[
            "git clone https://me:⟦hunter2Zx⟧@host/x",
            "git clone https://⟦hunter2Zx⟧@host/x",
            "git clone https://⟦hunter2Zx⟧:x-oauth-basic@host/x",
            "sh -c 'git clone https://me:⟦hunter2Zx⟧@host/x && make'",
            "psql postgresql://me:⟦hunter2Zx⟧@host:5432/db",
            "app --url=redis://:⟦hunter2Zx⟧@host/0",
            "mongosh 'mongodb://me:⟦hunter2Zx⟧@a,b/db'",
            "pip install --index-url https://me:⟦hunter2Zx⟧@host/simple x",
        ],
        unchanged: &[
            "git clone ssh://git@host/x",
            "git clone https://git@host/x",
            "git clone git@host:x/y.git",
            "psql postgresql://me@host:5432/db",
            "docker pull host:5000/image:tag@sha256:0123abc",
            "curl https://host:8080/me@host",
        ],
    },
    SecretRule {
        finds: Finds::Text(scan::hooks),
        masked: &[
            "curl https://hooks.slack.com/services/⟦T0/B0/hunter2Zx⟧",
            "curl https://api.telegram.org/bot⟦123:hunter2Zx/sendMessage⟧",
        ],
        unchanged: &["curl https://slack.com/services/list"],
    },
    SecretRule {
        finds: Finds::Text(scan::bearers),
        masked: &["app --header 'X: bearer ⟦hunter2Zx⟧'"],
        unchanged: &["git commit -m 'the bearer of bad news'"],
    },
    SecretRule {
        finds: Finds::Text(scan::private_keys),
        masked: &[
            "ssh-add - '-----BEGIN RSA PRIVATE KEY-----\n⟦MIIEhunter2Zx⟧\n-----END RSA PRIVATE KEY-----'",
            "app '-----BEGIN PRIVATE KEY-----\n⟦MIIEhunter2Zx⟧'",
        ],
        unchanged: &["app '-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----'"],
    },
    SecretRule {
        finds: Finds::Text(scan::sql),
        masked: &[
            "psql -c \"ALTER USER me WITH PASSWORD '⟦hunter2Zx⟧'\"",
            "mysql -e 'CREATE USER a IDENTIFIED BY \"⟦hunter2Zx⟧\"'",
        ],
        unchanged: &["psql -c 'SELECT password FROM users'"],
    },
    SecretRule {
        finds: Finds::Text(scan::go_sources),
        masked: &["app 'me:⟦hunter2Zx⟧@tcp(host:3306)/db'"],
        unchanged: &["app 'me@tcp(host:3306)/db'"],
    },
    SecretRule {
        finds: Finds::Token {
            marks: &[
                "ghp_",
                "gho_",
                "ghu_",
                "ghs_",
                "ghr_",
                "github_pat_",
                "glpat-",
                "gldt-",
                "glrt-",
                "glptt-",
                "hf_",
                "sk-",
                "sk_live_",
                "sk_test_",
                "rk_live_",
                "npm_",
                "pypi-",
                "AIza",
                "hvs.",
                "hvb.",
                "ya29.",
                "GOCSPX-",
                "dckr_pat_",
                "dop_v1_",
                "shpat_",
                "nvapi-",
                "gsk_",
                "r8_",
                "rubygems_",
                "AGE-SECRET-KEY-",
                "ATATT",
            ],
            at_least: 16,
        },
        masked: &[
            "gh ⟦ghp_a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1⟧",
            "git clone https://⟦ghp_a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1⟧@github.com/x/y",
            "app ⟦github_pat_11ABCDEFG0abcdefghij_klmnopqrstuvwxyz⟧",
            "run KEY=⟦glpat-a1b2c3d4e5f6g7h8i9j0⟧",
            "app ⟦npm_a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8⟧",
            "twine upload -p ⟦pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4⟧",
            "app --maps ⟦AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q⟧",
            "vault login ⟦hvs.CAESIJhunter2ZxabcdefGhIjK⟧",
            "app ⟦sk-proj-abcdEFGH1234ijklMNOP5678⟧",
            "app ⟦hf_abcdefghijklmnopqrstuvwxyz⟧",
        ],
        unchanged: &[
            "train hf_hub sk-learn npm_config_registry",
            "pip install sk-learn-contrib-lightning pypi-simple",
            "app --mode ghp_short",
        ],
    },
    SecretRule {
        finds: Finds::Token {
            marks: &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-", "SG.", "AKIA", "ASIA"],
            at_least: 12,
        },
        masked: &[
            "slack ⟦xoxb-123456789012-hunter2Zx⟧",
            "slack ⟦xoxa-2-123456789012⟧",
            "aws ⟦AKIAIOSFODNN7EXAMPLE⟧:⟦AKIAIOSFODNN7EXAMPLE⟧",
        ],
        unchanged: &["app AKIA xoxb- ASIA-PACIFIC"],
    },
    SecretRule {
        finds: Finds::Token { marks: &["eyJ"], at_least: 17 },
        masked: &["app ⟦eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N⟧"],
        unchanged: &["app eyJust keyJar"],
    },
    SecretRule {
        finds: Finds::Option(OptionRule {
            programs: &[],
            not: &["docker", "podman", "nerdctl", "chroot", "kubectl", "su"],
            option: "-u",
            takes: Takes::Next,
            value: SecretValue::User(':'),
            behind_login: false,
        }),
        masked: &["curl -u me:⟦hunter2Zx⟧ https://host", "sh -c 'curl -u me:⟦hunter2Zx⟧ host'"],
        unchanged: &[
            "sudo -u postgres psql",
            "app -u 1000:1000",
            "docker run -u app:app image",
            "nikto -u https://host",
        ],
    },
    SecretRule {
        finds: Finds::Option(OptionRule {
            programs: &[],
            not: &["docker", "podman", "nerdctl", "chroot", "kubectl", "setpriv", "pip", "pip3"],
            option: "--user",
            takes: Takes::Next,
            value: SecretValue::User(':'),
            behind_login: false,
        }),
        masked: &["curl --user me:⟦hunter2Zx⟧ https://host"],
        unchanged: &["docker run --user app:app image", "pip install --user x:y"],
    },
    SecretRule {
        finds: Finds::Option(OptionRule {
            programs: &[],
            not: &["docker", "podman", "nerdctl", "chroot", "kubectl", "setpriv", "pip", "pip3"],
            option: "--user=",
            takes: Takes::Joined,
            value: SecretValue::User(':'),
            behind_login: false,
        }),
        masked: &["curl --user=me:⟦hunter2Zx⟧ https://host"],
        unchanged: &["podman run --user=app:app image", "app --user=me"],
    },
    SecretRule {
        finds: option(&[], "--proxy-user", Takes::Next, SecretValue::User(':')),
        masked: &["curl --proxy-user me:⟦hunter2Zx⟧ https://host"],
        unchanged: &["curl --proxy-user me https://host"],
    },
    SecretRule {
        finds: option(&["curl"], "-u", Takes::Joined, SecretValue::User(':')),
        masked: &["curl -ume:⟦hunter2Zx⟧ https://host"],
        unchanged: &["date -u", "tar -uvf a:b"],
    },
    SecretRule {
        finds: option(&["curl"], "u", Takes::Bundled, SecretValue::User(':')),
        masked: &["curl -sSLu me:⟦hunter2Zx⟧ https://host"],
        unchanged: &["ps -eu a:b", "curl -sSL me:x"],
    },
    SecretRule {
        finds: option(&["curl"], "-U", Takes::Both, SecretValue::User(':')),
        masked: &["curl -U me:⟦hunter2Zx⟧ https://host"],
        unchanged: &["psql -U me db"],
    },
    SecretRule {
        finds: option(&["curl"], "-b", Takes::Both, SecretValue::Pairs),
        masked: &["curl -b sid=⟦hunter2Zx⟧ https://host"],
        unchanged: &["curl -b cookies.txt https://host", "grep -b a=b file"],
    },
    SecretRule {
        finds: option(&["http", "https", "xh"], "-a", Takes::Next, SecretValue::User(':')),
        masked: &["http -a me:⟦hunter2Zx⟧ host"],
        unchanged: &["ls -a a:b"],
    },
    SecretRule {
        finds: option(&["mysql*", "mariadb*"], "-p", Takes::Joined, SecretValue::All),
        masked: &[
            "/usr/bin/mysql -p⟦hunter2Zx⟧ db",
            "mysqldump -ume -p⟦hunter2Zx⟧ db",
            "sh -c 'mysql -p⟦hunter2Zx⟧ db < x.sql'",
        ],
        unchanged: &["make -pn", "mysql -p db", "mkdir -p dir", "ls mysql -pretty"],
    },
    SecretRule {
        finds: option(&["sshpass"], "-p", Takes::Both, SecretValue::All),
        masked: &["sshpass -p ⟦hunter2Zx⟧ ssh host", "sshpass -p⟦hunter2Zx⟧ ssh host"],
        unchanged: &["ssh -p 22 host", "sshpass -e ssh -p 22 host"],
    },
    SecretRule {
        finds: option(
            &["mongo*", "cqlsh", "rdesktop", "ncftp*", "arangosh", "influx", "rabbitmqadmin"],
            "-p",
            Takes::Next,
            SecretValue::All,
        ),
        masked: &["mongosh -u me -p ⟦hunter2Zx⟧ db"],
        unchanged: &["cp -p a b", "docker run -p 80:80 image", "mongosh -p --quiet"],
    },
    SecretRule {
        finds: Finds::Option(OptionRule {
            programs: &[],
            not: &["ssh"],
            option: "-p",
            takes: Takes::Next,
            value: SecretValue::All,
            behind_login: true,
        }),
        masked: &["docker login -u me -p ⟦hunter2Zx⟧ registry", "oc login -p ⟦hunter2Zx⟧"],
        unchanged: &["docker run -p 80:80 image", "ssh -p 22 login"],
    },
    SecretRule {
        finds: option(&["redis-cli", "valkey-cli"], "-a", Takes::Next, SecretValue::All),
        masked: &["redis-cli -h host -a ⟦hunter2Zx⟧ ping"],
        unchanged: &["ls -a dir", "redis-cli -h host ping"],
    },
    SecretRule {
        finds: option(
            &["smbclient", "rpcclient", "smbget", "net", "smbmap", "wmic"],
            "-U",
            Takes::Both,
            SecretValue::User('%'),
        ),
        masked: &["smbclient -U u%⟦hunter2Zx⟧ //host/x", "smbclient -Uu%⟦hunter2Zx⟧ //host/x"],
        unchanged: &["smbclient -U u //host/x", "psql -U u%x db"],
    },
    SecretRule {
        finds: option(
            &["smbclient", "rpcclient", "smbget"],
            "--user",
            Takes::Both,
            SecretValue::User('%'),
        ),
        masked: &["smbclient --user=u%⟦hunter2Zx⟧ //host/x"],
        unchanged: &["smbclient --user=u //host/x"],
    },
    SecretRule {
        finds: option(&["ldap*"], "-w", Takes::Both, SecretValue::All),
        masked: &["ldapsearch -x -D cn=me -w ⟦hunter2Zx⟧ -b dc=x"],
        unchanged: &["grep -w word file", "ldapsearch -W -b dc=x"],
    },
    SecretRule {
        finds: option(
            &["sqlcmd", "bcp", "osql", "tsql", "ipmitool", "ipmi-*", "mosquitto_*", "zip", "unzip"],
            "-P",
            Takes::Next,
            SecretValue::All,
        ),
        masked: &[
            "ipmitool -H host -U me -P ⟦hunter2Zx⟧ power status",
            "unzip -P ⟦hunter2Zx⟧ a.zip",
        ],
        unchanged: &["xargs -P 4 app", "scp -P 22 a host:"],
    },
    SecretRule {
        finds: option(&["7z", "7za", "7zr", "rar", "unrar"], "-p", Takes::Joined, SecretValue::All),
        masked: &["7z a -p⟦hunter2Zx⟧ a.7z file"],
        unchanged: &["tar -pxf a.tar", "7z x a.7z"],
    },
    SecretRule {
        finds: option(&["snmp*"], "-A", Takes::Next, SecretValue::All),
        masked: &["snmpget -v3 -A ⟦hunter2Zx⟧ host"],
        unchanged: &["ls -A dir"],
    },
    SecretRule {
        finds: option(&["snmp*"], "-X", Takes::Next, SecretValue::All),
        masked: &["snmpwalk -v3 -X ⟦hunter2Zx⟧ host"],
        unchanged: &["curl -X POST host"],
    },
    SecretRule {
        finds: option(&["openssl"], "-k", Takes::Next, SecretValue::All),
        masked: &["openssl enc -aes256 -k ⟦hunter2Zx⟧ -in x"],
        unchanged: &["sort -k 2 file", "curl -k host"],
    },
    SecretRule {
        finds: option(&["ssh-keygen"], "-N", Takes::Next, SecretValue::All),
        masked: &["ssh-keygen -t ed25519 -N ⟦hunter2Zx⟧ -f key"],
        unchanged: &["ssh-keygen -t ed25519 -f key", "sbatch -N 4 job.sh"],
    },
    SecretRule {
        finds: option(&["lftp"], "-u", Takes::Next, SecretValue::User(',')),
        masked: &["lftp -u me,⟦hunter2Zx⟧ host"],
        unchanged: &["lftp -u me host"],
    },
    SecretRule {
        finds: option(&["xfreerdp*"], "/p:", Takes::Joined, SecretValue::All),
        masked: &["xfreerdp /v:host /u:me /p:⟦hunter2Zx⟧"],
        unchanged: &["xfreerdp /v:host", "ls /p:x"],
    },
    SecretRule {
        finds: option(
            &["sqlplus", "sqlldr", "expdp", "impdp"],
            "",
            Takes::Joined,
            SecretValue::Login,
        ),
        masked: &["sqlplus me/⟦hunter2Zx⟧@db"],
        unchanged: &["sqlplus me@db", "ls me/x@db"],
    },
    SecretRule {
        finds: Finds::Runner(&[
            "env",
            "sshpass",
            "timeout",
            "nice",
            "nohup",
            "sudo",
            "doas",
            "su",
            "time",
            "stdbuf",
            "ionice",
            "chrt",
            "taskset",
            "numactl",
            "chroot",
            "strace",
            "ltrace",
            "perf",
            "valgrind",
            "gdb",
            "srun",
            "mpirun",
            "mpiexec*",
            "orterun",
            "prterun",
            "xargs",
            "setsid",
            "setpriv",
            "unshare",
            "nsenter",
            "weigh",
            "ssh",
            "parallel",
            "watch",
            "script",
            "flock",
            "systemd-run",
            "exec",
            "eval",
            "command",
            "then",
            "do",
            "else",
            "if",
            "while",
            "until",
            "!",
            "{",
            "singularity",
            "apptainer",
            "busybox",
        ]),
        masked: &[
            "env A=b mysql -p⟦hunter2Zx⟧ db",
            "timeout -k 5 10 mysql -p⟦hunter2Zx⟧ db",
            "nice -n 5 mysql -p⟦hunter2Zx⟧ db",
            "nohup mysql -p⟦hunter2Zx⟧ db",
            "sudo -u postgres /usr/bin/mysql -p⟦hunter2Zx⟧ db",
            "weigh phase x -- mysql -p⟦hunter2Zx⟧ db",
            "weigh run -o dir -- nice sshpass -p ⟦hunter2Zx⟧ ssh host",
            "kubectl exec pod -- mysql -p⟦hunter2Zx⟧",
            "docker exec box mysql -p⟦hunter2Zx⟧",
            "ssh host mysql -p⟦hunter2Zx⟧ db",
            "ssh host 'mysql -p⟦hunter2Zx⟧ db'",
            "sh -c 'if true; then mysql -p⟦hunter2Zx⟧ db; fi'",
        ],
        unchanged: &["env make -pn", "timeout 5 ssh -p 22 host", "sudo mkdir -p dir"],
    },
    SecretRule {
        finds: Finds::Runner(&[
            "sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "python*", "perl*", "ruby*", "node",
            "tclsh*", "expect", "php*",
        ]),
        masked: &["/bin/sh /usr/local/bin/mysql -p⟦hunter2Zx⟧ db"],
        unchanged: &["/bin/sh ./build -pn", "python3 train.py -p 3"],
    },
];

/// A number of one or two digits: `-pass 2`.
fn is_count(value: &str) -> bool {
    value.len() <= 2 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where OpenSSL finds a password: not the password.
fn is_source(value: &str) -> bool {
    value == "stdin" || ["env:", "file:", "fd:"].iter().any(|source| value.starts_with(source))
}

fn is_auth_method(value: &str) -> bool {
    const METHODS: [&str; 28] = [
        "any",
        "basic",
        "bearer",
        "cert",
        "default",
        "digest",
        "gss",
        "gssapi",
        "iam",
        "ident",
        "jwt",
        "kerberos",
        "ldap",
        "login",
        "md5",
        "munge",
        "negotiate",
        "ntlm",
        "oauth",
        "oauth2",
        "optional",
        "pam",
        "peer",
        "plain",
        "required",
        "scram-sha-256",
        "token",
        "trust",
    ];
    METHODS.contains(&value.to_ascii_lowercase().as_str())
}

/// Whether it is plainly the name of a file.
fn is_file(value: &str) -> bool {
    value.starts_with(['/', '~'])
        || value.starts_with("./")
        || value.starts_with("../")
        || has_extension(value)
}

fn has_extension(value: &str) -> bool {
    let is_extension = |end: &str| {
        (1..=5).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    value.rsplit_once('.').is_some_and(|(_, end)| is_extension(end))
}

/// A column, a file, or a word: `--key=2,2n`, `--key client.pem`, `--sort-key user_id`.
fn is_plain_key(value: &str) -> bool {
    let is_column = value.starts_with(|c: char| c.is_ascii_digit()) && value.len() <= 8;
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte));
    is_column || is_word || is_file(value)
}
