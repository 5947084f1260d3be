"""A table of secrets in all forms that people leave in traces: at most 2 % may pass the mask.

None is real. Each line has one secret between ⟦ and ⟧; ¦ stands for nothing, so that scanners
of others don't take the file for a leak. {A20} is twenty letters and digits, {H32} hex digits,
{B40} base64, {U} a UUID.
"""

import random
import re

import pytest

from pytest_upskill._util.tokens import without_tokens
from pytest_upskill.teach.secrets import masked

# Masked wherever they are, also in what a judge gets.
TOKENS = r"""
⟦A3¦-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}⟧
⟦AGE-¦SECRET-KEY-1{U58}⟧
⟦sk-¦ant-api03-{A93}AA⟧
⟦sk-¦ant-admin01-{A93}AA⟧
⟦sk-¦ant-oat01-{A80}⟧
⟦sk-¦proj-{A74}T3Blbk¦FJ{A74}⟧
⟦sk-¦svcacct-{A60}⟧
⟦sk-¦{A20}T3Blbk¦FJ{A20}⟧
⟦sk-¦or-v1-{H64}⟧
⟦sk-¦{H32}⟧
⟦gsk¦_{A52}⟧
⟦xai¦-{A80}⟧
⟦r8¦_{A37}⟧
⟦nvapi¦-{A64}⟧
⟦pplx¦-{A48}⟧
⟦tvly¦-dev-{A32}⟧
⟦jina¦_{A60}⟧
⟦csk¦-{A48}⟧
⟦pcsk¦_{A6}_{A56}⟧
⟦lsv2¦_pt_{H32}_{H10}⟧
⟦hf¦_{A34}⟧
⟦api¦_org_{A34}⟧
⟦wandb¦_v1_{A40}⟧
⟦gh¦p_{A36}⟧
⟦gh¦o_{A36}⟧
⟦gh¦s_{A36}⟧
⟦gh¦u_{A36}⟧
⟦gh¦r_{A36}⟧
⟦github¦_pat_{A22}_{A59}⟧
⟦gl¦pat-{A20}⟧
⟦gl¦dt-{A20}⟧
⟦gl¦rt-{A20}⟧
⟦gl¦ptt-{H40}⟧
⟦gl¦cbt-64_{A20}⟧
⟦GR¦1348941{A20}⟧
⟦AT¦ATT3{A80}={H8}⟧
⟦AT¦BB{A32}⟧
⟦AK¦IA{U16}⟧
⟦AS¦IA{U16}⟧
⟦AB¦SK{A109}⟧
⟦AI¦za{A35}⟧
⟦ya¦29.{A60}⟧
⟦GOC¦SPX-{A28}⟧
⟦1/¦/0{A40}⟧
⟦{A3}8¦Q~{A34}⟧
⟦LT¦AI{A20}⟧
⟦do¦p_v1_{H64}⟧
⟦do¦o_v1_{H64}⟧
⟦do¦r_v1_{H64}⟧
⟦dapi¦{H32}⟧
⟦dckr¦_pat_{A27}⟧
⟦dp.¦pt.{A43}⟧
⟦dp.¦st.prd.{A43}⟧
⟦hv¦s.{A90}⟧
⟦hv¦b.{A138}⟧
⟦s.¦a1{A22}⟧
⟦{A14}.¦atlasv1.{A67}⟧
⟦HR¦KU-AA{A58}⟧
⟦lin¦_api_{A40}⟧
⟦secret¦_{A43}⟧
⟦ntn¦_{D11}{A35}⟧
⟦pat¦{A14}.{H64}⟧
⟦NR¦AK-{U27}⟧
⟦NR¦II-{A32}⟧
⟦{H36}NR¦AL⟧
⟦gl¦c_{A80}⟧
⟦gl¦sa_{A32}_{H8}⟧
⟦sntry¦u_{H64}⟧
⟦sntry¦s_{A100}_{A43}⟧
⟦npm¦_{A36}⟧
⟦pypi¦-AgEIcHlwaS5vcmc{A80}⟧
⟦rubygems¦_{H48}⟧
⟦oy2¦{L43}⟧
⟦sk¦_live_{A24}⟧
⟦rk¦_live_{A24}⟧
⟦sk¦_test_{A24}⟧
⟦wh¦sec_{A32}⟧
⟦SK¦{H32}⟧
⟦SG¦.{A22}.{A43}⟧
⟦key¦-{H32}⟧
⟦{H32}-us¦12⟧
⟦xkeysib¦-{H64}-{A16}⟧
⟦re¦_{A8}_{A24}⟧
⟦shp¦at_{H32}⟧
⟦shp¦ss_{H32}⟧
⟦sq0¦atp-{A22}⟧
⟦EA¦AA{A60}⟧
⟦xox¦b-{D12}-{D12}-{A24}⟧
⟦xox¦p-{D12}-{D12}-{D12}-{H32}⟧
⟦xapp¦-1-A{U10}-{D13}-{H64}⟧
⟦{D10}:¦AA{A33}⟧
⟦M{A23}.¦{A6}.{A38}⟧
⟦pul¦-{H40}⟧
⟦PM¦AK-{H24}-{H34}⟧
⟦pscale¦_tkn_{A43}⟧
⟦pscale¦_pw_{A43}⟧
⟦sbp¦_{H40}⟧
⟦sb¦_secret_{A31}⟧
⟦tskey¦-auth-{A12}-{A32}⟧
⟦fo1¦_{A43}⟧
⟦figd¦_{A40}⟧
⟦sk¦.eyJ{A50}.{A22}⟧
⟦nfp¦_{A40}⟧
⟦vcp¦_{A56}⟧
⟦sq¦p_{H40}⟧
⟦sgp¦_{H40}⟧
⟦AQ¦VN{A36}⟧
⟦CL¦OJARS_{L60}⟧
⟦dt0¦c01.{U24}.{U64}⟧
⟦sha256¦~{A43}⟧
⟦pat¦-na1-{U}⟧
⟦ops¦_eyJ{A250}⟧
⟦ey¦JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{A20}.{A43}⟧
⟦ey¦JhbGciOiJkaXIifQ..{A16}.{A60}.{A22}⟧
https://hooks.slack¦.com/services/⟦T{U8}/B{U8}/{A24}⟧
https://discord¦.com/api/webhooks/{D18}/⟦{A68}⟧
https://acme.webhook.office¦.com/webhookb2/⟦{U}@{U}/IncomingWebhook/{H32}/{U}⟧
https://hooks.zapier¦.com/hooks/catch/⟦{D7}/{A12}⟧
https://api.telegram¦.org/bot⟦{D9}:AA{A33}⟧/sendMessage
-----BEGIN RSA ¦PRIVATE KEY-----\\n⟦{B64}\\n{B64}⟧\\n-----END RSA ¦PRIVATE KEY-----
-----BEGIN OPENSSH ¦PRIVATE KEY-----\n⟦{B64}\n{B64}⟧\n-----END OPENSSH ¦PRIVATE KEY-----
"-----BEGIN ¦PRIVATE KEY-----\n" +\n"⟦{B64}\n" +\n"{B64}⟧\n" +\n"-----END ¦PRIVATE KEY-----"
> -----BEGIN EC ¦PRIVATE KEY-----\n> ⟦{B64}\n> {B64}⟧\n> -----END EC ¦PRIVATE KEY-----
-----BEGIN PGP ¦PRIVATE KEY BLOCK-----\n\n⟦{B64}\n{B64}⟧\n-----END PGP ¦PRIVATE KEY BLOCK-----
{"private_key": "-----BEGIN ¦PRIVATE KEY-----\\n⟦{B64}\\n{B64}⟧\\n-----END ¦PRIVATE KEY-----\\n"}
Private-Lines: 2\n⟦{B64}\n{B64}⟧\nPrivate-MAC: abc
AK¦IA{U16} ⟦{B40}⟧
⟦$2b$12${A53}⟧
root:⟦$6$saltsalt${A86}⟧:19000:0:99999:7:::
⟦tgp¦_v1_{A43}⟧
⟦fw¦_{A24}⟧
⟦bkua¦_{H40}⟧
⟦1/¦{D16}:{H32}⟧
token¦-abcde:⟦{L54}⟧
⟦cio¦{A32}⟧
⟦xprv¦9{A107}⟧
⟦nsec¦1{L58}⟧
bob:⟦{SHA}{B27}=⟧
⟦xox¦d-{A60}%2F{A20}⟧
https://hc-ping¦.com/⟦{U}⟧
https://ntfy¦.sh/⟦{A16}⟧
"""

# Known by what stands around them.
OTHERS = r"""
DB_PASS=⟦hunter2⟧
DB_PASS=⟦sunshine⟧
export DB_PASS='⟦correct horse battery⟧'
MYSQL_PWD=⟦letmein⟧
PGPASSWORD=⟦swordfish⟧ psql -h db
set REDIS_PASSWORD=⟦p4ssw0rd!⟧
$env:FOO_SECRET = '⟦tr0ub4dor⟧'
$env:DB_PASSWORD="⟦Winter2024!⟧"
setx GITHUB_TOKEN ⟦{H40}⟧
setenv MY_SECRET ⟦{A16}⟧
ENV DB_PASSWORD ⟦s3cr3tpw⟧
ENV API_TOKEN=⟦{A20}⟧
ARG NPM_TOKEN=⟦{U}⟧
export FOO_SECRET='⟦not-so-random⟧'
export HEROKU_API_KEY=⟦{U}⟧
CLOUDFLARE_API_TOKEN=⟦{A40}⟧
CF_API_KEY=⟦{H37}⟧
DD_API_KEY=⟦{H32}⟧
FASTLY_API_TOKEN=⟦{A32}⟧
ALGOLIA_ADMIN_KEY=⟦{H32}⟧
CONFLUENT_SECRET=⟦{A64}⟧
TWILIO_AUTH_TOKEN=⟦{H32}⟧
OKTA_API_TOKEN=⟦00{A40}⟧
SNOWFLAKE_PASSWORD=⟦Sn0wfl@ke⟧
SECRET_KEY=⟦django-insecure-{A40}⟧
SECRET_KEY_BASE=⟦{H64}⟧
JWT_SECRET=⟦mysupersecretjwt⟧
AWS_SECRET_ACCESS_KEY=⟦{B40}⟧
aws_secret_access_key = ⟦{B40}⟧
aws configure set aws_secret_access_key ⟦{B40}⟧
aws_session_token=⟦{B100}⟧
password: ⟦hunter⟧
password: ⟦sunshine⟧
  password: "⟦Tr0ub4dor&3⟧"
Password: ⟦dragon⟧
db.password=⟦monkey⟧
spring.datasource.password=⟦s3cr3t⟧
password = ⟦qwertz⟧
passphrase: ⟦correct horse battery staple⟧
passphrase = "⟦correct horse battery staple⟧"
"passphrase": "⟦my old dog ate grass⟧"
The passphrase is "⟦correct-horse-battery⟧".
the password is ⟦swordfish99⟧
Password for bob is: ⟦Sw0rdfish⟧
the root password was set to `⟦toor1234⟧`
mnemonic: ⟦legal winner thank year wave sausage worth useful legal winner thank yellow⟧
{"password": "⟦hunter2⟧"}
{\\"password\\": \\"⟦hunter2⟧\\"}
{"client_secret": "⟦{A24}⟧"}
{"refresh_token": "⟦{A40}⟧", "x": 1}
{"apiKey": "⟦{A32}⟧"}
{"name": "DB_PASSWORD", "value": "⟦hunter22⟧"}
- name: DB_PASSWORD\n  value: ⟦hunter22⟧
- name: API_TOKEN\n  value: "⟦{A24}⟧"
{"auths": {"ghcr.io": {"auth": "⟦dXNlcjpwYXNzd29yZDEyMw==⟧"}}}
"_auth": "⟦dXNlcjpwYXNzd29yZDEyMw==⟧"
//npm.example.org/:_authToken=⟦{U}⟧
//npm.example.org/:_password=⟦cGFzc3dvcmQ=⟧
<password>⟦hunter22⟧</password>
<Password>⟦S3cret!⟧</Password>
<add key="ApiSecret" value="⟦{A24}⟧" />
<add key="Password" value="⟦hunter22⟧" />
<property name="password" value="⟦hunter22⟧"/>
<input type="hidden" name="csrf_token" value="⟦{A32}⟧">
<input name="password" value="⟦hunter22⟧">
connection.password ⟦=> "hunter22"⟧
'password' => '⟦hunter22⟧',
:password => "⟦hunter22⟧"
password := "⟦hunter22⟧"
const password = '⟦hunter22⟧';
let apiSecret = "⟦{A20}⟧"
String token = "⟦{A30}⟧";
conn = connect(user="bob", password="⟦hunter22⟧")
auth=("bob", "x"), token="⟦{A30}⟧"
login(password='⟦swordfish⟧')
api_key: ⟦{A24}⟧
api-key: ⟦{A24}⟧
apikey=⟦{A24}⟧
X-Api-Key: ⟦{A24}⟧
x-auth-token: ⟦{H32}⟧
PRIVATE-TOKEN: ⟦{A20}⟧
Ocp-Apim-Subscription-Key: ⟦{H32}⟧
client-key-data: ⟦{B100}⟧
  token: ⟦{A60}⟧
Authorization: Bearer ⟦{A32}⟧
authorization: bearer ⟦{A32}⟧
AUTHORIZATION: BASIC ⟦Ym9iOnNlY3JldA==⟧
'Authorization': 'Token ⟦{H40}⟧'
"Authorization": "Basic ⟦Ym9iOnNlY3JldA==⟧"
Authorization: SSWS ⟦00{A40}⟧
Authorization: ApiKey ⟦{A40}⟧
Authorization: ⟦{A40}⟧
-H "Authorization: GenieKey ⟦{U}⟧"
Proxy-Authorization: Basic ⟦Ym9iOnNlY3JldA==⟧
headers = {"Authorization": f"Bearer ⟦{A32}⟧"}
http.extraheader="AUTHORIZATION: basic ⟦eC1hY2Nlc3MtdG9rZW46eHl6⟧"
Cookie: session=⟦{A24}⟧; theme=dark
Set-Cookie: JSESSIONID=⟦{H32}⟧; Path=/; HttpOnly
document.cookie = "PHPSESSID=⟦{A26}⟧"
?sessionid=⟦{A26}⟧
curl -u bob:⟦hunter2⟧ https://x.org
curl --user 'bob:⟦my secret⟧' https://x.org
curl -H "X-Api-Key: ⟦{A24}⟧" https://x.org
http -a bob:⟦hunter2⟧ https://x.org
wget --user bob --password=⟦hunter2⟧ https://x.org
wget --http-password=⟦hunter2⟧ x.org
mysql -u root -p⟦hunter2⟧ shop
mysqldump -uroot -p⟦S3cret!⟧ shop > x.sql
mysql --password=⟦hunter2⟧
mysql -h db -u root --password ⟦hunter2⟧
sshpass -p ⟦hunter2⟧ ssh bob@host
sshpass -p '⟦hunter 2⟧' ssh host
redis-cli -h cache -a ⟦hunter2⟧ ping
docker login -u bob -p ⟦hunter2⟧ ghcr.io
echo "⟦hunter2⟧" | docker login --password-stdin
echo ⟦hunter2⟧ | sudo -S apt update
echo 'bob:⟦hunter2⟧' | chpasswd
mongosh -u admin -p ⟦hunter2⟧ --host db
ldapsearch -x -D cn=admin -w ⟦hunter2⟧ -b dc=x
sqlcmd -S db -U sa -P ⟦Passw0rd!⟧
zip -P ⟦hunter2⟧ x.zip a b
7z a -p⟦hunter2⟧ x.7z a
gpg --batch --passphrase ⟦hunter2⟧ -d x.gpg
openssl rsa -in k.pem -passin pass:⟦hunter2⟧
keytool -list -storepass ⟦changeit1⟧ -keystore k.jks
ssh-keygen -t ed25519 -N ⟦hunter22⟧ -f k
vault login ⟦{A26}⟧
tool --token ⟦{A20}⟧
tool --api-key=⟦{A20}⟧
tool --secret ⟦{A20}⟧
tool --password ⟦hunter2⟧
tool --client-secret "⟦{A20}⟧"
helm install x --set db.password=⟦hunter2⟧
kubectl create secret generic x --from-literal=password=⟦hunter2⟧
terraform apply -var db_password=⟦hunter2⟧
ALTER USER bob WITH PASSWORD '⟦hunter2⟧';
CREATE USER 'bob'@'%' IDENTIFIED BY '⟦hunter2⟧';
CREATE LOGIN bob WITH PASSWORD = '⟦hunter2⟧'
requirepass ⟦foobared1⟧
ConvertTo-SecureString "⟦hunter2⟧" -AsPlainText -Force
machine x.org login bob password ⟦hunter2⟧
machine x.org\n  login bob\n  password ⟦hunter2⟧
db.x.org:5432:shop:bob:⟦hunter2⟧
postgres://bob:⟦hunter2⟧@db:5432/x
postgresql+asyncpg://bob:⟦p%40ss⟧@db/x
mysql://root:⟦s3/cr@t⟧@db/x
mongodb+srv://bob:⟦hunter2⟧@c0.mongodb.net/x
amqp://guest:⟦hunter2⟧@mq:5672//
redis://:⟦hunter2⟧@cache:6379/0
ftp://bob:⟦hunter2⟧@x.org/
smtp://bob%40x.org:⟦hunter2⟧@mail:587
https://bob:⟦hunter2⟧@git.x.org/a.git
https://⟦{H32}⟧@o123.ingest.sentry.io/45
https://⟦{A40}⟧@git.x.org/a.git
jdbc:mysql://db/x?user=bob&password=⟦hunter2⟧
jdbc:oracle:thin:bob/⟦hunter2⟧@db:1521/x
Server=db;Database=x;User Id=sa;Password=⟦hunter2⟧;
Driver={ODBC};Server=db;Uid=sa;Pwd=⟦hunter2⟧;
DefaultEndpointsProtocol=https;AccountName=a;AccountKey=⟦{B86}==⟧;EndpointSuffix=x
Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=⟦{B43}=⟧
https://a.blob.core.windows.net/c?sv=2022&se=2024&sig=⟦{A20}%2B{A20}%3D⟧
https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=⟦{H64}⟧
https://storage.googleapis.com/b/k?X-Goog-Signature=⟦{H64}⟧
https://x.org/a?token=⟦{A20}⟧&b=1
https://x.org/a?access_token=⟦{A20}⟧
https://x.org/a?api_key=⟦{A20}⟧
https://x.org/reset?code=⟦{A24}⟧
otpauth://totp/x?secret=⟦{U32}⟧&issuer=x
PrivateKey = ⟦{B43}=⟧
PresharedKey = ⟦{B43}=⟧
psk="⟦my wifi pass1⟧"
wpa-psk ⟦hunter22⟧
{"kty": "RSA", "n": "abc", "d": "⟦{A86}⟧"}
PRIVATE_KEY=0x⟦{H64}⟧
telegram_bot_token = "⟦{D10}:AA{A33}⟧"
datadog_api_key: ⟦{H32}⟧
azure_storage_key = "⟦{B86}==⟧"
OAUTH_CLIENT_SECRET: ⟦{A32}⟧
encryption_key = ⟦{H64}⟧
STRIPE_WEBHOOK_SECRET="⟦{A32}⟧"
ADMIN_PASSWORD_PROD=⟦hunter22⟧
adminPassword: '⟦P@$$w0rd⟧'
db_passwd="⟦pa$word1⟧"
DB_PASS="⟦hunter2⟧"
db_pass: ⟦hunter2⟧
DBPASS=⟦sunshine⟧
dbPass = "⟦sunshine⟧"
DATABASE_PASSWORD: "⟦sunshine⟧"
POSTGRES_PASSWORD: ⟦sunshine⟧
MYSQL_ROOT_PASSWORD=⟦sunshine⟧
  password: ⟦Sunshine⟧
password: ⟦SunshineDay⟧
user: bob, password: ⟦dragon⟧
username=bob password=⟦dragon⟧
pw: ⟦Dr4gon!9⟧
pw=⟦Dr4gon99⟧
Passwort: ⟦geheim12⟧
mot de passe: ⟦Secret123⟧
contraseña: ⟦Secreta123⟧
пароль: ⟦Sekret123⟧
password ⟦Dr4gon!9⟧
pass=⟦Dr4gon!9⟧
"pass": "⟦Dr4gon!9⟧"
smtp_pass = '⟦dragonfly⟧'
credentials: bob:⟦Dr4gon!9⟧
credentials = "bob:⟦Dr4gon!9⟧"
auth: bob:⟦Dr4gon!9⟧
basic_auth: ["bob", "⟦Dr4gon!9⟧"]
auth=("bob", "⟦Dr4gon!9⟧")
HTTPBasicAuth("bob", "⟦Dr4gon!9⟧")
requests.get(url, auth=('bob', '⟦hunter2⟧'))
client = Client(token="⟦{A20}⟧")
openai.api_key = "⟦{A32}⟧"
new OpenAI({ apiKey: '⟦{A32}⟧' })
setPassword("⟦hunter2⟧")
.password("⟦hunter2⟧")
.setToken("⟦{A20}⟧")
token=⟦{H20}⟧
Token ⟦{H40}⟧
SECRET=⟦abcdef⟧
SECRET: ⟦abcdefghij⟧
secret = "⟦abcdefghij⟧"
MY_KEY=⟦{A20}⟧
ENCRYPTION_KEY=⟦{B44}⟧
FERNET_KEY = b"⟦{A43}=⟧"
signing_secret: ⟦{H32}⟧
SLACK_SIGNING_SECRET=⟦{H32}⟧
webhook_url: https://hooks.slack¦.com/services/⟦T{U10}/B{U10}/{A24}⟧
AccountKey=⟦{B86}==⟧
SharedAccessSignature sr=x&sig=⟦{A30}%3d⟧&se=1
?sv=2020-08-04&ss=b&sig=⟦{A20}%2F{A20}%3D⟧
AWSAccessKeyId=AK¦IA{U16}&Signature=⟦{A20}%3D⟧&Expires=1
x-amz-security-token: ⟦{B200}⟧
Credential=AK¦IA{U16}/20240101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=⟦{H64}⟧
"auth": "⟦{B40}⟧"
.dockerconfigjson: ⟦{B120}⟧
identitytoken: "⟦{A60}⟧"
"registrytoken": "⟦{A60}⟧"
kubectl config set-credentials x --token=⟦{A40}⟧
KEY="-----BEGIN ¦PRIVATE KEY-----\\n⟦{B64}\\n{B64}⟧\\n-----END ¦PRIVATE KEY-----"
'-----BEGIN ¦PRIVATE KEY-----',\n'⟦{B64}',\n'{B64}⟧',
MIIEvQIBADANBgkqhkiG9w0BAQEFAASC⟦{B200}⟧
gpg --passphrase '⟦correct horse battery⟧' -d x
Enter passphrase: ⟦hunter2horse⟧
my password is ⟦hunter2⟧ ok
password was changed to ⟦Dr4gon!9⟧
use the password ⟦Dr4gon!9⟧ to log in
The API key: ⟦{A32}⟧
API Key - ⟦{A32}⟧
api key ⟦{A32}⟧
My token is ⟦{A32}⟧
Bearer: ⟦{A32}⟧
"bearer": "⟦{A32}⟧"
Authorization=Bearer%20⟦{A32}⟧
Authorization: Bearer\n⟦{A32}⟧
--header 'Authorization: token ⟦{H40}⟧'
-H "Private-Token: ⟦{A20}⟧"
-H 'x-api-key:⟦{A30}⟧'
git clone https://oauth2:⟦{A20}⟧@gitlab.com/a/b
git clone https://x-access-token:⟦{A40}⟧@github.com/a/b
https://api.x.org/v1/⟦bot{D9}:AA{A33}⟧/getMe
mongodb://bob:⟦p@ss:w0rd⟧@h1:27017,h2:27017/x
redis://default:⟦{A20}⟧@x:6379
sqlserver://sa:⟦Passw0rd!⟧@db
jdbc:postgresql://db/x?user=a&password=⟦hunter2⟧&ssl=true
jdbc:sqlserver://db;user=sa;password=⟦hunter2⟧;
Data Source=db;User ID=sa;Password="⟦my pass word⟧"
PWD=⟦hunter2⟧;UID=sa
snowflake://bob:⟦hunter2⟧@acc/db
psql "host=db user=bob password=⟦hunter2⟧"
export PGPASSWORD=⟦sunshine⟧
mysql -uroot -p'⟦hunter2⟧' x
mysql -u root -p"⟦hunter 2⟧"
mysql -u root --password='⟦hunter2⟧'
sshpass -p⟦hunter2⟧ ssh x
sshpass -e; SSHPASS=⟦hunter2⟧
redis-cli -u redis://:⟦hunter2⟧@x
redis-cli --pass ⟦hunter2⟧
AUTH ⟦hunter2⟧
docker login --username bob --password ⟦hunter2⟧
az login --service-principal -u x -p ⟦{A34}⟧ --tenant y
aws configure set aws_access_key_id ⟦AK¦IA{U16}⟧
smbclient //h/s -U bob%⟦hunter2⟧
curl -d '{"password":"⟦hunter2⟧"}' x
curl -d 'user=bob&pass=⟦hunter2⟧' x
curl --data "password=⟦hunter2⟧" x
curl -b 'session=⟦{A30}⟧' x
Set-Cookie: auth=⟦{A30}⟧
csrftoken=⟦{A32}⟧
<meta name="csrf-token" content="⟦{A32}⟧">
<secret>⟦{A20}⟧</secret>
<string name="api_key">⟦{A32}⟧</string>
password="⟦hunter2⟧"/>
[Environment]::SetEnvironmentVariable("API_TOKEN", "⟦{A30}⟧")
os.environ["API_TOKEN"] = "⟦{A30}⟧"
os.environ['DB_PASSWORD'] = '⟦sunshine⟧'
process.env.SECRET = "⟦sunshine⟧";
config.set("password", "⟦hunter2⟧")
("password", "⟦hunter2⟧")
setProperty("db.password", "⟦hunter2⟧")
heroku config:set SECRET=⟦{A20}⟧
fly secrets set API_KEY=⟦{A20}⟧
gh secret set TOKEN --body "⟦{A30}⟧"
htpasswd -bc .htpasswd bob ⟦hunter2⟧
bob:⟦$apr1$abcdefgh$abcdefghijklmnopqrstu.⟧
useradd -p '⟦$6$abc$abcdefghijklmnopqrstuvwxyz⟧' bob
private_key = "0x⟦{H64}⟧"
seed phrase: ⟦abandon ability able about above absent absorb abstract absurd abuse access accident⟧
wallet key ⟦{A51}⟧
eyJ0eXAiOiJKV1QiLCJhbGciOi.⟦eyJzdWIiOiIx{A30}.{A30}⟧
https://x.org/?auth=⟦{A30}⟧
https://x.org/#access_token=⟦{A30}⟧&x
https://s3.x/?X-Amz-Credential=⟦AK¦IA{U16}%2F2024⟧
VAULT_DEV_ROOT_TOKEN_ID=⟦{A24}⟧
MINIO_ROOT_PASSWORD: ⟦miniosecret⟧
dsn: "bob:⟦hunter2⟧@tcp(127.0.0.1:3306)/shop"
mc alias set minio http://localhost:9000 admin ⟦S3cretMinio9⟧
twine upload -u bob -p ⟦hunter22⟧ dist/*
poetry config http-basic.corp bob ⟦hunter22⟧
bundle config gems.corp.com bob:⟦hunter22⟧
storePassword '⟦hunter22⟧'
Authorization: Digest username="bob", response="⟦{H32}⟧"
X-Auth: Basic ⟦Ym9iOnNlY3JldDEyMw==⟧
smtp.login("bob", "⟦hunter22⟧")
server.login('bob', '⟦abcd efgh ijkl mnop⟧')
lftp -u bob,⟦hunter22⟧ sftp://x.org
vault write auth/approle/login role_id=x secret_id=⟦{U}⟧
Unseal Key 1: ⟦{B44}⟧
SecretID:         ⟦{U}⟧
Secret ID    = ⟦{U}⟧
neo4j-admin set-initial-password ⟦hunter22⟧
cypher-shell -u neo4j -p ⟦hunter22⟧
SET PASSWORD FOR 'bob'@'%' = '⟦hunter22⟧';
CREATE ROLE bob LOGIN PASSWORD '⟦hunter22⟧';
ALTER USER sa WITH PASSWORD=N'⟦hunter22⟧'
sqlplus system/⟦Oracle123⟧@xe
expdp userid=bob/⟦hunter22⟧
InstrumentationKey=⟦{U}⟧;IngestionEndpoint=https://x
net use z: //srv/x /user:bob ⟦hunter22⟧
schtasks /create /ru bob /rp ⟦hunter22⟧
psexec //srv -u bob -p ⟦hunter22⟧ cmd
xfreerdp /v:srv /u:bob /p:⟦hunter22⟧
expect "word:"; send "⟦hunter22⟧\\r"
openssl enc -aes-256-cbc -k ⟦hunter22⟧ -in a
useradd -p $(openssl passwd -1 ⟦hunter22⟧) bob
chpasswd <<< "bob:⟦hunter22⟧"
yes ⟦hunter22⟧ | passwd bob
new password for bob: ⟦hunter22⟧
nmcli dev wifi connect home password ⟦hunter22⟧
Key Content            : ⟦hunter22⟧
Product key: ⟦{U5}-{U5}-{U5}-{U5}-{U5}⟧
co = cohere.Client("⟦{A40}⟧")
algoliasearch("APP1234567", "⟦{H32}⟧")
BW_SESSION="⟦{B86}==⟧"
MJ_APIKEY_PRIVATE=⟦{H32}⟧
shodan init ⟦{A32}⟧
snyk auth ⟦{U}⟧
codecov -t ⟦{U}⟧
-Dsonar.login=⟦{H40}⟧
tls.key: ⟦LS0tLS1CRUdJTi{A100}⟧
aws ssm put-parameter --name /db/pw --type SecureString --value ⟦hunter22⟧
wrangler secret put X <<< ⟦{A24}⟧
echo "⟦hunter22⟧" | wrangler secret put X
https://api.x.org/data?appid=⟦{H32}⟧
https://x.org/reset-password/⟦{A40}⟧
https://x.org/invite/⟦{A24}⟧
bindpw ⟦b1ndpw77⟧
variable "db_password" { default = "⟦Yukon900⟧" }
skopeo copy --dest-creds bob:⟦Yukon900⟧ a b
buildah login -u bob -p ⟦Yukon900⟧ x
mosquitto_pub -u bob -P ⟦Yukon900⟧ -t x
dotnet user-secrets set "Db:Password" "⟦Yukon900⟧"
ovsx publish -p ⟦{U}⟧
drush user:password bob "⟦Yukon900⟧"
db.auth("bob", "⟦Yukon900⟧")
samba-tool user create bob ⟦Yukon900⟧
snmp-server community ⟦s3cr3tcomm⟧ RO
username admin password 7 ⟦{H16}⟧
radius-server key ⟦Yukon900⟧
pre-shared-key ⟦Yukon900⟧
wpa_passphrase home ⟦Yukon900⟧
bw login bob ⟦Yukon900⟧
security add-generic-password -a bob -s x -w ⟦Yukon900⟧
signtool sign /f x.pfx /p ⟦Yukon900⟧ a.exe
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
            return "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
        return f"{letters[:-1]}7"

    made = re.sub(r"\{([AHULDB])(\d*)\}", one, pattern.replace("¦", ""))
    return re.sub(r"(?<!\\)\\n", "\n", made).replace("\\\\", "\\")


def _table(lines: str) -> list[tuple[str, str]]:
    """Texts, each with its secret."""
    dice = random.Random(14)
    found = []
    for line in lines.strip().split("\n"):
        made = _made(line, dice)
        secret = made.partition("⟦")[2].partition("⟧")[0]
        found.append((made.replace("⟦", "").replace("⟧", ""), secret))
    return found


def _is_missed(secret: str, shown: str) -> bool:
    """Whether a part of the secret is left that would help anybody."""
    size = min(len(secret), 10)
    windows = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    return any(window in shown for window in windows if window.count("-") < 5)


def _missed(table: list[tuple[str, str]], mask: object) -> list[str]:
    assert callable(mask)
    return [text for text, secret in table if _is_missed(secret, mask(text))]


def test_at_most_two_percent_of_the_formats_are_missed() -> None:
    table = [*_table(TOKENS), *_table(OTHERS)]
    assert len(table) >= 400
    missed = _missed(table, masked)
    assert len(missed) <= len(table) * 0.02, "\n".join(missed)


def test_tokens_are_masked_in_what_a_judge_gets() -> None:
    table = _table(TOKENS)
    missed = _missed(table, without_tokens)
    assert len(missed) <= len(table) * 0.02, "\n".join(missed)


@pytest.mark.parametrize(
    "around", ["{}", "  1\t{}", "> {}", "+{}", "run: {} && ls", "log {}\nnext"]
)
def test_the_formats_are_found_wherever_they_stand(around: str) -> None:
    table = [(around.format(text), secret) for text, secret in _table(OTHERS) if "{" not in text]
    missed = [text for text in _missed(table, masked) if ":5432:shop" not in text]
    assert len(missed) <= len(table) * 0.03, "\n".join(missed)


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
PASSED tests/test_auth.py::test_token_refresh[expired]
FAILED tests/test_tokens.py::test_key_order - AssertionError: assert 3 == 4
=== 212 passed, 3 skipped in 4.21s ===
def connect(user: str, password: str | None = None, token: Token = NO_TOKEN) -> Client:
    password = getpass.getpass("Password: ")
    api_key = os.environ["OPENAI_API_KEY"]
    secret_key = settings.SECRET_KEY
    token = tokens[index]
    self.token = self._next_token()
    if token.type == TokenType.KEYWORD:
    for key, value in sorted(config.items(), key=lambda pair: pair[0]):
    key = f"{prefix}:{user_id}"
    cache_key = "user:1234567890:profile"
    return hashlib.sha256(password.encode()).hexdigest()
    assert response.json()["token"] == "…"
    parser.add_argument("--token", help="the token to use", required=True)
    parser.add_argument("--password", type=str, default=None)
    user.set_password(new_password)
    if not check_password(password, user.password):
    raise ValueError("password must have at least 12 characters")
    password: str
    token: Optional[str] = None
    secret: bytes
    password = Column(String(128), nullable=False)
    password = serializers.CharField(write_only=True)
    api_key: SecretStr = Field(..., env="API_KEY")
    password=password,
    password=args.password,
    password=os.getenv("DB_PASSWORD"),
    token=token,
    key=operator.itemgetter(1),
    primary_key=True, autoincrement=True
    auth=(user, password),
    auth = HTTPBasicAuth(user, password)
    "password": "string",
    "password": null,
    "token": null,
    "token_type": "bearer",
    "expires_in": 3600,
    "max_tokens": 4096,
    "prompt_tokens": 1234, "completion_tokens": 567,
    "key": "value",
    "keys": ["a", "b", "c"],
    "sort_key": "created_at",
    "label": "Password", "placeholder": "Enter your password"
    "password": "Password must be at least 8 characters"
    "forgot": "Forgot your password?"
const token = await getToken();
const { token, user } = await login(email, password);
const password = req.body.password;
export const API_KEY = process.env.API_KEY;
headers: { Authorization: `Bearer ${token}` },
headers = {"Authorization": f"Bearer {token}"}
headers["X-Api-Key"] = self._api_key
-H "Authorization: Bearer $TOKEN"
-H "Authorization: Bearer <token>"
curl -u "$USER:$PASSWORD" https://example.org/api
curl -sS https://example.org/api/v1/items?page=2&sort=key
export API_KEY=$(cat key.txt)
export TOKEN="${TOKEN:-}"
PASSWORD=$1
DB_PASSWORD=${DB_PASSWORD}
API_KEY=<your-api-key>
API_KEY=your-api-key-here
SECRET_NAME=/run/secrets/db
KEY_FILE=/etc/ssl/private/server.key
PWD=/workspace/project
OLDPWD=/tmp
password: ${{ secrets.DB_PASSWORD }}
password: "{{ vault_db_password }}"
password: !Ref DatabasePassword
token: ${{ github.token }}
secretName: tls-certificate
secretKeyRef:
  name: database-credentials
  key: password
  key: username
keys:
key_name = "deploy"
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 user@host
commit 6cc28acd59c08e4174c18b07d1455c0b4876cc28
index 83db48f..bf269f4 100644
--- a/src/auth/token.py
+++ b/src/auth/token.py
@@ -12,7 +12,9 @@ def refresh_token(session):
-    return token
+    return token or new_token(session)
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
"integrity": "sha512-Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYg==",
"resolved": "https://registry.example.org/lodash/-/lodash-4.17.21.tgz",
lodash@4.17.21: 5.2 MB
id = "123e4567-e89b-12d3-a456-426614174000"
request_id=123e4567-e89b-12d3-a456-426614174000 status=200
trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7
2024-11-15T08:30:12.123456Z INFO auth: user logged in session=12
INFO: token bucket refilled: 50 tokens
WARNING: token limit exceeded (4096)
ERROR: invalid password for user "bob"
Error: password authentication failed for user "postgres"
fatal: Authentication failed for 'https://git.example.org/org/repo.git/'
remote: Invalid username or password.
Permission denied (publickey,password).
The password is required, and the token is checked.
The token is invalid or has expired.
The key is to read the file first.
The secret is stored in the vault.
The API key is read from the environment.
A password of 12 letters is fine; the default is none.
Your password has been changed.
I'll check how the password is hashed and where the token is stored.
Let me look at the auth module: it keeps the session in a cookie.
Now the tests pass: 14 passed, 0 failed.
First pass: collect the names. Second pass: resolve them.
The signature of the function is `def sign(key, message)`.
Signature: add(a: int, b: int) -> int
signature = inspect.signature(function)
token = next(stream)
tokens = tokenizer.encode(text)
tokenizer = AutoTokenizer.from_pretrained("gpt2")
num_tokens=1024, token_count=12345
pad_token_id: 50256
eos_token: "<|endoftext|>"
["username", "password", "email", "token"]
("password", "Password"), ("token", "Token")
auth("admin", "editor")
password -> bcrypt -> database
The key - read the file first - is short.
password: PasswordField
token: AccessToken
see the password policy v2 and token rotation
special_tokens = {"bos": "<s>", "eos": "</s>"}
keyboard: Key.SPACE
monkey = "capuchin-12345678"
key = "ArrowDown"
event.key === "Enter"
keyPath: "id", autoIncrement: true
foreign_key="users.id"
PRIMARY KEY (id), FOREIGN KEY (user_id) REFERENCES users (id)
CREATE TABLE users (id serial primary key, password varchar(60) not null);
SELECT id, token FROM sessions WHERE key = $1;
git clone git@example.org:org/repo.git
git remote add origin https://example.org/org/repo.git
docker run -p 8080:80 -u 1000:1000 nginx
docker compose -p project up -d
docker build -t app --build-arg VERSION=1.2.3 .
mysql -u root -p shop < dump.sql
mysql --port=3306 --protocol=tcp
psql -h localhost -p 5432 -U app shop
redis-cli -p 6379 ping
ssh -p 2222 deploy@example.org
mkdir -p src/auth && cp -p a b
zip -r archive.zip src
az group list --query "[].name"
helm upgrade app ./chart --set image.tag=1.2.3
kubectl get secret database -o yaml
kubectl create secret generic db --from-file=./password.txt
vault kv get secret/app
openssl genrsa -out key.pem 2048
ssh-keygen -t ed25519 -C "deploy key"
gpg --list-secret-keys
npm config set registry https://registry.example.org
pip install keyring pyjwt passlib
from cryptography.hazmat.primitives import hashes
import secrets; secrets.token_hex(16)
http://localhost:3000/users/@me
https://example.org:8443/path?x=1
https://unpkg.example.org/@scope/pkg@1.0.0/dist/index.js
postgres://localhost:5432/shop
f"postgres://{user}:{password}@{host}/db"
https://user@example.org/repo.git
Content-Type: application/json; charset=utf-8
Set-Cookie header is missing
Cookie: the banner is shown once
def get(self, cookie: Cookie = None, cookies: str = "session") -> None: ...
WWW-Authenticate: Basic realm="Restricted"
Authorization header is required
"authorization", "x-request-id", "accept"
auth: required
auth: basic
auth_type = "oauth2"
author: Jane Doe
authors = ["Jane Doe"]
assert auth.is_valid(user)
config.auth.enabled = true
signing: disabled
sig: 2.5e-4
sign = -1 if negative else 1
design = "responsive-layout-2"
bypass: true
compass = north
passenger: 42
passing: all
by_pass = compute(x)
1. Read `SKILL.md`. 2. Run the tests. 3. Commit.
| key | value | default |
| `password` | string | required |
| `--token TOKEN` | the token of the API |
- `api_key`: the key of the provider (default: `OPENAI_API_KEY`)
- **Password**: at least 12 characters
<input type="password" name="password">
<label for="password">Password</label>
<PasswordField label="Password" required />
type Token = { kind: TokenKind; text: string };
interface Props { token: string; onKey: (key: string) => void }
let mut tokens: Vec<Token> = Vec::new();
fn parse(token: &Token) -> Result<Key, Error>
match token { Token::Key(k) => k, _ => return None }
func (c *Client) SetToken(token string) *Client
var ErrInvalidToken = errors.New("invalid token")
public String getPassword() { return password; }
private final String token;
$password = $_POST['password'];
@param password the password of the user
:param token: the token to check
>>> len(tokens)
5
Traceback (most recent call last):
  File "auth.py", line 12, in check_password
KeyError: 'token'
TypeError: login() missing 1 required positional argument: 'password'
AUTH tokens are not supported here
with password policies and token rotation
WITH key AS (SELECT 1)
"""


def test_at_most_one_in_200_harmless_lines_is_masked() -> None:
    lines = HARMLESS.strip().split("\n")
    assert len(lines) >= 200
    changed = [f"{line} -> {masked(line)}" for line in lines if masked(line) != line]
    changed = [line for line in changed if "<EMAIL>" not in line]
    assert len(changed) <= len(lines) // 200, "\n".join(changed)


def test_harmless_lines_stay_when_they_stand_together() -> None:
    lines = HARMLESS.strip().split("\n")
    shown = masked(HARMLESS.strip()).split("\n")
    changed = [a for a, b in zip(lines, shown, strict=True) if a != b and "<EMAIL>" not in b]
    assert len(changed) <= len(lines) // 200, "\n".join(changed)


def test_what_only_may_be_a_secret_stays_in_what_a_judge_gets() -> None:
    text = "password: hunter2\nDB_PASS=sunshine\nmysql -psecret1\nhttps://bob:pw@host"
    assert without_tokens(text) == text
    assert without_tokens(HARMLESS) == HARMLESS
