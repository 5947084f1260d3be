"""Secrets in the forms that people leave in traces: an example of each rule,
and what is none.

None is real. Each has its secret between ⟦ and ⟧; ¦ stands for nothing, so that
scanners of others don't take the file for a leak. {A20} is twenty letters and digits,
{H32} hex digits, {B40} base64, {U} a UUID.
"""

import random
import re
from collections.abc import Callable, Sequence

from pytest_upskill._util.secrets import masked
from pytest_upskill._util.tokens import without_tokens

# Masked wherever they are, also in what a judge gets.
TOKENS = r"""
⟦A3¦-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}⟧ ⟦AGE-¦SECRET-KEY-1{U58}⟧ ⟦sk-¦svcacct-{A60}⟧ ⟦sk-¦{H32}⟧
⟦gsk¦_{A52}⟧ ⟦xai¦-{A80}⟧ ⟦r8¦_{A37}⟧ ⟦nvapi¦-{A64}⟧ ⟦pplx¦-{A48}⟧ ⟦tvly¦-dev-{A32}⟧ ⟦jina¦_{A60}⟧
⟦csk¦-{A48}⟧ ⟦pcsk¦_{A6}_{A56}⟧ ⟦lsv2¦_pt_{H32}_{H10}⟧ ⟦hf¦_{A34}⟧ ⟦api¦_org_{A34}⟧
⟦wandb¦_v1_{A40}⟧ ⟦gh¦p_{A36}⟧ ⟦github¦_pat_{A22}_{A59}⟧ ⟦gl¦dt-{A20}⟧ ⟦GR¦1348941{A20}⟧
⟦AT¦ATT3{A80}={H8}⟧ ⟦AT¦BB{A32}⟧ ⟦AK¦IA{U16}⟧ ⟦AB¦SK{A109}⟧ ⟦AI¦za{A35}⟧ ⟦ya¦29.{A60}⟧
⟦GOC¦SPX-{A28}⟧ ⟦1/¦/0{A40}⟧ ⟦{A3}8¦Q~{A34}⟧ ⟦LT¦AI{A20}⟧ ⟦do¦p_v1_{H64}⟧ ⟦dapi¦{H32}⟧
⟦dckr¦_pat_{A27}⟧ ⟦dp.¦pt.{A43}⟧ ⟦hv¦s.{A90}⟧ ⟦s.¦a1{A22}⟧ ⟦{A14}.¦atlasv1.{A67}⟧ ⟦HR¦KU-AA{A58}⟧
⟦lin¦_api_{A40}⟧ ⟦secret¦_{A43}⟧ ⟦ntn¦_{D11}{A35}⟧ ⟦pat¦{A14}.{H64}⟧ ⟦NR¦AK-{U27}⟧ ⟦{H36}NR¦AL⟧
⟦gl¦c_{A80}⟧ ⟦gl¦sa_{A32}_{H8}⟧ ⟦sntry¦u_{H64}⟧ ⟦npm¦_{A36}⟧ ⟦pypi¦-AgEIcHlwaS5vcmc{A80}⟧
⟦rubygems¦_{H48}⟧ ⟦oy2¦{L43}⟧ ⟦sk¦_live_{A24}⟧ ⟦wh¦sec_{A32}⟧ ⟦SK¦{H32}⟧ ⟦SG¦.{A22}.{A43}⟧
⟦key¦-{H32}⟧ ⟦{H32}-us¦12⟧ ⟦xkeysib¦-{H64}-{A16}⟧ ⟦re¦_{A8}_{A24}⟧ ⟦shp¦at_{H32}⟧ ⟦sq0¦atp-{A22}⟧
⟦EA¦AA{A60}⟧ ⟦xox¦b-{D12}-{D12}-{A24}⟧ ⟦xapp¦-1-A{U10}-{D13}-{H64}⟧ ⟦{D10}:¦AA{A33}⟧
⟦M{A23}.¦{A6}.{A38}⟧ ⟦pul¦-{H40}⟧ ⟦PM¦AK-{H24}-{H34}⟧ ⟦pscale¦_pw_{A43}⟧ ⟦sbp¦_{H40}⟧
⟦sb¦_secret_{A31}⟧ ⟦tskey¦-auth-{A12}-{A32}⟧ ⟦fo1¦_{A43}⟧ ⟦figd¦_{A40}⟧ ⟦sk¦.eyJ{A50}.{A22}⟧
⟦nfp¦_{A40}⟧ ⟦vcp¦_{A56}⟧ ⟦sq¦p_{H40}⟧ ⟦sgp¦_{H40}⟧ ⟦AQ¦VN{A36}⟧ ⟦CL¦OJARS_{L60}⟧
⟦dt0¦c01.{U24}.{U64}⟧ ⟦sha256¦~{A43}⟧ ⟦pat¦-na1-{U}⟧ ⟦ops¦_eyJ{A250}⟧
⟦ey¦JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{A20}.{A43}⟧ ⟦ey¦JhbGciOiJkaXIifQ..{A16}.{A60}.{A22}⟧
https://hooks.slack¦.com/services/⟦T{U8}/B{U8}/{A24}⟧
https://discord¦.com/api/webhooks/{D18}/⟦{A68}⟧
https://acme.webhook.office¦.com/webhookb2/⟦{U}@{U}/IncomingWebhook/{H32}/{U}⟧
https://hooks.zapier¦.com/hooks/catch/⟦{D7}/{A12}⟧
https://api.telegram¦.org/bot⟦{D9}:AA{A33}⟧/sendMessage ⟦$2b$12${A53}⟧
root:⟦$6$saltsalt${A86}⟧:19000:0:99999:7::: ⟦tgp¦_v1_{A43}⟧ ⟦fw¦_{A24}⟧ ⟦bkua¦_{H40}⟧
⟦1/¦{D16}:{H32}⟧ token¦-abcde:⟦{L54}⟧ ⟦cio¦{A32}⟧ ⟦xprv¦9{A107}⟧ ⟦nsec¦1{L58}⟧ bob:⟦{SHA}{B27}=⟧
https://hc-ping¦.com/⟦{U}⟧ https://ntfy¦.sh/⟦{A16}⟧
"""
TOKENS_IN_LINES = r"""
-----BEGIN RSA ¦PRIVATE KEY-----\\n⟦{B64}\\n{B64}⟧\\n-----END RSA ¦PRIVATE KEY-----
-----BEGIN OPENSSH ¦PRIVATE KEY-----\n⟦{B64}\n{B64}⟧\n-----END OPENSSH ¦PRIVATE KEY-----
"-----BEGIN ¦PRIVATE KEY-----\n" +\n"⟦{B64}\n" +\n"{B64}⟧\n" +\n"-----END ¦PRIVATE KEY-----"
> -----BEGIN EC ¦PRIVATE KEY-----\n> ⟦{B64}\n> {B64}⟧\n> -----END EC ¦PRIVATE KEY-----
-----BEGIN PGP ¦PRIVATE KEY BLOCK-----\n\n⟦{B64}\n{B64}⟧\n-----END PGP ¦PRIVATE KEY BLOCK-----
{"private_key": "-----BEGIN ¦PRIVATE KEY-----\\n⟦{B64}\\n{B64}⟧\\n-----END ¦PRIVATE KEY-----\\n"}
Private-Lines: 2\n⟦{B64}\n{B64}⟧\nPrivate-MAC: abc
"""

# Known by what stands around them.
NAMED = r"""
MYSQL_PWD=⟦letmein⟧
setenv MY_SECRET ⟦{A16}⟧
The passphrase is "⟦correct-horse-battery⟧".
Password for bob is: ⟦Sw0rdfish⟧
the root password was set to `⟦toor1234⟧`
mnemonic: ⟦legal winner thank year wave sausage worth useful legal winner thank yellow⟧
{\\"password\\": \\"⟦hunter2⟧\\"}
{"name": "DB_PASSWORD", "value": "⟦hunter22⟧"}
- name: DB_PASSWORD\n  value: ⟦hunter22⟧
- name: API_TOKEN\n  value: "⟦{A24}⟧"
<Password>⟦S3cret!⟧</Password>
<add key="Password" value="⟦hunter22⟧" />
'password' => '⟦hunter22⟧',
:password => "⟦hunter22⟧"
password := "⟦hunter22⟧"
client-key-data: ⟦{B100}⟧
Authorization: Bearer ⟦{A32}⟧
Authorization: ApiKey ⟦{A40}⟧
http.extraheader="AUTHORIZATION: basic ⟦eC1hY2Nlc3MtdG9rZW46eHl6⟧"
Cookie: session=⟦{A24}⟧; theme=dark
Set-Cookie: JSESSIONID=⟦{H32}⟧; Path=/; HttpOnly
document.cookie = "PHPSESSID=⟦{A26}⟧"
wget --http-password=⟦hunter2⟧ x.org
redis-cli -h cache -a ⟦hunter2⟧ ping
mongosh -u admin -p ⟦hunter2⟧ --host db
ldapsearch -x -D cn=admin -w ⟦hunter2⟧ -b dc=x
zip -P ⟦hunter2⟧ x.zip a b
7z a -p⟦hunter2⟧ x.7z a
ssh-keygen -t ed25519 -N ⟦hunter22⟧ -f k
vault login ⟦{A26}⟧
tool --password ⟦hunter2⟧
kubectl create secret generic x --from-literal=password=⟦hunter2⟧
ALTER USER bob WITH PASSWORD '⟦hunter2⟧';
CREATE USER 'bob'@'%' IDENTIFIED BY '⟦hunter2⟧';
ConvertTo-SecureString "⟦hunter2⟧" -AsPlainText -Force
machine x.org login bob password ⟦hunter2⟧
db.x.org:5432:shop:bob:⟦hunter2⟧
ftp://bob:⟦hunter2⟧@x.org/
https://⟦{A40}⟧@git.x.org/a.git
jdbc:oracle:thin:bob/⟦hunter2⟧@db:1521/x
https://x.org/reset?code=⟦{A24}⟧
otpauth://totp/x?secret=⟦{U32}⟧&issuer=x
psk="⟦my wifi pass1⟧"
{"kty": "RSA", "n": "abc", "d": "⟦{A86}⟧"}
DATABASE_PASSWORD: "⟦sunshine⟧"
pw: ⟦Dr4gon!9⟧
contraseña: ⟦Secreta123⟧
пароль: ⟦Sekret123⟧
password ⟦Dr4gon!9⟧
"pass": "⟦Dr4gon!9⟧"
credentials: bob:⟦Dr4gon!9⟧
auth: bob:⟦Dr4gon!9⟧
auth=("bob", "⟦Dr4gon!9⟧")
.password("⟦hunter2⟧")
SECRET=⟦abcdef⟧
secret = "⟦abcdefghij⟧"
SharedAccessSignature sr=x&sig=⟦{A30}%3d⟧&se=1
AWSAccessKeyId=AK¦IA{U16}&Signature=⟦{A20}%3D⟧&Expires=1
.dockerconfigjson: ⟦{B120}⟧
my password is ⟦hunter2⟧ ok
password was changed to ⟦Dr4gon!9⟧
API Key - ⟦{A32}⟧
Bearer: ⟦{A32}⟧
sshpass -p⟦hunter2⟧ ssh x
sshpass -e; SSHPASS=⟦hunter2⟧
redis-cli -u redis://:⟦hunter2⟧@x
AUTH ⟦hunter2⟧
aws configure set aws_access_key_id ⟦AK¦IA{U16}⟧
smbclient //h/s -U bob%⟦hunter2⟧
curl -b 'session=⟦{A30}⟧' x
<string name="api_key">⟦{A32}⟧</string>
[Environment]::SetEnvironmentVariable("API_TOKEN", "⟦{A30}⟧")
os.environ["API_TOKEN"] = "⟦{A30}⟧"
os.environ['DB_PASSWORD'] = '⟦sunshine⟧'
gh secret set TOKEN --body "⟦{A30}⟧"
htpasswd -bc .htpasswd bob ⟦hunter2⟧
seed phrase: ⟦abandon ability able about above absent absorb abstract absurd abuse access accident⟧
https://s3.x/?X-Amz-Credential=⟦AK¦IA{U16}%2F2024⟧
VAULT_DEV_ROOT_TOKEN_ID=⟦{A24}⟧
dsn: "bob:⟦hunter2⟧@tcp(127.0.0.1:3306)/shop"
mc alias set minio http://localhost:9000 admin ⟦S3cretMinio9⟧
poetry config http-basic.corp bob ⟦hunter22⟧
bundle config gems.corp.com bob:⟦hunter22⟧
storePassword '⟦hunter22⟧'
Authorization: Digest username="bob", response="⟦{H32}⟧"
lftp -u bob,⟦hunter22⟧ sftp://x.org
vault write auth/approle/login role_id=x secret_id=⟦{U}⟧
SecretID:         ⟦{U}⟧
Secret ID    = ⟦{U}⟧
neo4j-admin set-initial-password ⟦hunter22⟧
cypher-shell -u neo4j -p ⟦hunter22⟧
ALTER USER sa WITH PASSWORD=N'⟦hunter22⟧'
expdp userid=bob/⟦hunter22⟧
net use z: //srv/x /user:bob ⟦hunter22⟧
schtasks /create /ru bob /rp ⟦hunter22⟧
xfreerdp /v:srv /u:bob /p:⟦hunter22⟧
expect "word:"; send "⟦hunter22⟧\\r"
openssl enc -aes-256-cbc -k ⟦hunter22⟧ -in a
chpasswd <<< "bob:⟦hunter22⟧"
yes ⟦hunter22⟧ | passwd bob
new password for bob: ⟦hunter22⟧
nmcli dev wifi connect home password ⟦hunter22⟧
Key Content            : ⟦hunter22⟧
co = cohere.Client("⟦{A40}⟧")
BW_SESSION="⟦{B86}==⟧"
codecov -t ⟦{U}⟧
-Dsonar.login=⟦{H40}⟧
aws ssm put-parameter --name /db/pw --type SecureString --value ⟦hunter22⟧
wrangler secret put X <<< ⟦{A24}⟧
https://x.org/invite/⟦{A24}⟧
bindpw ⟦b1ndpw77⟧
variable "db_password" { default = "⟦Yukon900⟧" }
skopeo copy --dest-creds bob:⟦Yukon900⟧ a b
dotnet user-secrets set "Db:Password" "⟦Yukon900⟧"
ovsx publish -p ⟦{U}⟧
bw login bob ⟦Yukon900⟧
security add-generic-password -a bob -s x -w ⟦Yukon900⟧
signtool sign /f x.pfx /p ⟦Yukon900⟧ a.exe
"""

# What agents' traces are made of; none of it is a secret.
HARMLESS = r"""
sudo -u app2 mkdir -p data2
docker run -u root -p 8080:80 nginx
python -u -m pytest -p no:cacheprovider tests2
git push -u origin feature2 && mkdir -p build2
openssl enc -d -in a.enc -out a.txt
the community edition 2 and the username field
login("user", "password")
Basic usage of the client, see basic authentication
PASS: tests/test_login.py::test_password_is_required
FAILED tests/test_tokens.py::test_key_order - AssertionError: assert 3 == 4
def connect(user: str, password: str | None = None, token: Token = NO_TOKEN) -> Client:
    password = getpass.getpass("Password: ")
    api_key = os.environ["OPENAI_API_KEY"]
    secret_key = settings.SECRET_KEY
    cache_key = "user:1234567890:profile"
    return hashlib.sha256(password.encode()).hexdigest()
    raise ValueError("password must have at least 12 characters")
    auth = HTTPBasicAuth(user, password)
    "password": null,
    "label": "Password", "placeholder": "Enter your password"
const token = await getToken();
const { token, user } = await login(email, password);
headers: { Authorization: `Bearer ${token}` },
headers = {"Authorization": f"Bearer {token}"}
-H "Authorization: Bearer $TOKEN"
-H "Authorization: Bearer <token>"
curl -u "$USER:$PASSWORD" https://example.org/api
curl -sS https://example.org/api/v1/items?page=2&sort=key
API_KEY=<your-api-key>
API_KEY=your-api-key-here
KEY_FILE=/etc/ssl/private/server.key
PWD=/workspace/project
OLDPWD=/tmp
password: ${{ secrets.DB_PASSWORD }}
password: "{{ vault_db_password }}"
password: !Ref DatabasePassword
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 user@host
commit 6cc28acd59c08e4174c18b07d1455c0b4876cc28
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
"integrity": "sha512-Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYg==",
"resolved": "https://registry.example.org/lodash/-/lodash-4.17.21.tgz",
id = "123e4567-e89b-12d3-a456-426614174000"
trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7
2024-11-15T08:30:12.123456Z INFO auth: user logged in session=12
fatal: Authentication failed for 'https://git.example.org/org/repo.git/'
The password is required, and the token is checked.
The key is to read the file first.
Your password has been changed.
Let me look at the auth module: it keeps the session in a cookie.
First pass: collect the names. Second pass: resolve them.
Signature: add(a: int, b: int) -> int
pad_token_id: 50256
("password", "Password"), ("token", "Token")
auth("admin", "editor")
password: PasswordField
see the password policy v2 and token rotation
special_tokens = {"bos": "<s>", "eos": "</s>"}
monkey = "capuchin-12345678"
event.key === "Enter"
foreign_key="users.id"
PRIMARY KEY (id), FOREIGN KEY (user_id) REFERENCES users (id)
git clone git@example.org:org/repo.git
git remote add origin https://example.org/org/repo.git
docker run -p 8080:80 -u 1000:1000 nginx
docker compose -p project up -d
mysql -u root -p shop < dump.sql
psql -h localhost -p 5432 -U app shop
redis-cli -p 6379 ping
ssh -p 2222 deploy@example.org
mkdir -p src/auth && cp -p a b
zip -r archive.zip src
kubectl get secret database -o yaml
kubectl create secret generic db --from-file=./password.txt
vault kv get secret/app
openssl genrsa -out key.pem 2048
gpg --list-secret-keys
npm config set registry https://registry.example.org
http://localhost:3000/users/@me
https://example.org:8443/path?x=1
https://unpkg.example.org/@scope/pkg@1.0.0/dist/index.js
postgres://localhost:5432/shop
f"postgres://{user}:{password}@{host}/db"
https://user@example.org/repo.git
Set-Cookie header is missing
Cookie: the banner is shown once
def get(self, cookie: Cookie = None, cookies: str = "session") -> None: ...
WWW-Authenticate: Basic realm="Restricted"
Authorization header is required
"authorization", "x-request-id", "accept"
auth: required
auth: basic
sig: 2.5e-4
bypass: true
compass = north
<label for="password">Password</label>
interface Props { token: string; onKey: (key: string) => void }
func (c *Client) SetToken(token string) *Client
TypeError: login() missing 1 required positional argument: 'password'
AUTH tokens are not supported here
with password policies and token rotation
WITH key AS (SELECT 1)
"""


def _made(pattern: str, dice: random.Random) -> str:
    kinds = {
        "A": "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789",
        "H": "0123456789abcdef",
        "U": "ABCDEFGHJKLMNPQRSTUVWXYZ23456789",
        "L": "abcdefghijklmnopqrstuvwxyz0123456789",
        "D": "123456789",
        "B": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    }

    def one(match: re.Match[str]) -> str:
        letters = "".join(dice.choices(kinds[match[1]], k=int(match[2] or 36)))
        if not match[2]:  # a UUID
            digits = "".join(dice.choices(kinds["H"], k=32))
            return "-".join(
                digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
            )
        return f"{letters[:-1]}7"

    made = re.sub(r"\{([AHULDB])(\d*)\}", one, pattern.replace("¦", ""))
    return re.sub(r"(?<!\\)\\n", "\n", made).replace("\\\\", "\\")


def _table(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Texts, each with its secret."""
    dice = random.Random(14)
    made = [_made(line, dice) for line in lines]
    secrets = [text.partition("⟦")[2].partition("⟧")[0] for text in made]
    return [
        (text.replace("⟦", "").replace("⟧", ""), secret)
        for text, secret in zip(made, secrets, strict=True)
    ]


OF_TOKENS = _table([*TOKENS.split(), *TOKENS_IN_LINES.strip().split("\n")])
OF_NAMED = _table(NAMED.strip().split("\n"))


def _is_missed(secret: str, shown: str) -> bool:
    """Whether a part of the secret is left that would help anybody."""
    size = min(len(secret), 10)
    windows = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    return any(window in shown for window in windows if window.count("-") < 5)


def _missed(table: Sequence[tuple[str, str]], mask: Callable[[str], str]) -> list[str]:
    return [text for text, secret in table if _is_missed(secret, mask(text))]


def test_every_form_is_masked() -> None:
    assert _missed([*OF_TOKENS, *OF_NAMED], masked) == []


def test_tokens_are_masked_in_what_a_judge_gets() -> None:
    assert _missed(OF_TOKENS, without_tokens) == []


def test_the_forms_are_found_wherever_they_stand() -> None:
    forms = [
        (text, secret)
        for text, secret in OF_NAMED
        if "{" not in text and ":5432:" not in text
    ]
    for around in ("  1\t{}", "> {}", "+{}", "run: {} && ls", "log {}\nnext"):
        missed = _missed(
            [(around.format(text), secret) for text, secret in forms], masked
        )
        assert len(missed) <= len(forms) * 0.03, "\n".join(missed)


def test_harmless_lines_stay_alone_and_together() -> None:
    lines = HARMLESS.strip().split("\n")
    changed = [f"{line} -> {masked(line)}" for line in lines if masked(line) != line]
    assert [line for line in changed if "<EMAIL>" not in line] == []
    together = masked(HARMLESS.strip()).split("\n")
    pairs = zip(lines, together, strict=True)
    assert [
        line for line, shown in pairs if line != shown and "<EMAIL>" not in shown
    ] == []


def test_what_only_may_be_a_secret_stays_in_what_a_judge_gets() -> None:
    text = "password: hunter2\nDB_PASS=sunshine\nmysql -psecret1\nhttps://bob:pw@host"
    assert without_tokens(text) == text
    assert without_tokens(HARMLESS) == HARMLESS
