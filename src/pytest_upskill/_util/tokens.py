"""Mask what is surely a secret, whatever stands around it: tokens, private keys,
webhooks.

Each format begins with a text of its own, or has a form that nothing else has, so
hardly anything harmless is masked: answers that a judge gets are masked by these
alone. See ``secrets`` for those that are known by their names, as in
``DB_PASS=…``. All patterns take linear time: they begin with plain text, and a
part that another must follow has a limit.
"""

import re
from functools import cache
from typing import Final

_A: Final = "[A-Za-z0-9]"
_W: Final = r"[\w-]"

# By provider, in the order of their names. Tails are shorter than real ones where a
# beginning is known to be nothing else, so that a token which was cut off is found too.
_FORMATS: Final = (
    r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){2,5}[A-Z0-9]{5}",  # 1Password
    r"ops_eyJ[\w+/=-]{40,}",
    r"AGE-(?:SECRET-KEY|PLUGIN)-[0-9A-Z-]{40,}",
    rf"pat{_A}{{14}}\.[a-f0-9]{{64}}",  # Airtable
    rf"LTAI{_A}{{12,24}}(?!{_A})",  # Alibaba
    # Anthropic, OpenAI, OpenRouter
    rf"sk-(?:ant|proj|svcacct|admin|or|lf|None)-{_W}{{16,}}",
    r"sk-(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{20,}",
    rf"sess-{_A}{{36,}}",
    rf"apify_api_{_A}{{30,}}",
    rf"AKCp{_A}{{50,}}|cmVmd{_A}{{50,}}",  # Artifactory
    r"ATATT3[\w=-]{40,}|ATCTT3[\w=-]{40,}|ATBB[\w=-]{20,}",  # Atlassian
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
    r"ABSK[\w+/=]{60,}|bedrock-api-key-[\w+/=]{30,}",
    rf"csk-{_A}{{40,}}",  # Cerebras
    r"CLOJARS_[a-z0-9]{50,}",
    rf"v1\.0-[a-f0-9]{{24}}-[a-f0-9]{{100,}}|cf(?:ut|at|k)_{_A}{{30,}}",  # Cloudflare
    rf"CCIPAT_{_W}{{20,}}",  # CircleCI
    r"dapi[a-f0-9]{32}(?:-\d)?|dose[a-f0-9]{32}",  # Databricks
    rf"(?:dd[a-z]{{0,3}}|ddapp)_{_A}{{34,}}",  # Datadog
    r"do[opr]_v1_[a-f0-9]{40,}",  # DigitalOcean
    rf"dckr_(?:pat|oat)_{_W}{{20,}}",  # Docker
    rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?{_A}{{30,}}",  # Doppler
    rf"sl\.(?:u\.)?{_W}{{60,}}",  # Dropbox
    r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}",  # Dynatrace
    rf"EZ[AT]K{_A}{{50,}}",  # EasyPost
    r"EAA[A-Za-z0-9]{60,}",  # Facebook
    # Fly.io
    rf"fo1_{_W}{{30,}}|fm[12][ar]?_[\w+/=-]{{60,}}|FlyV1 fm\d[\w+/=,-]{{60,}}",
    rf"fio-u-{_W}{{50,}}|fig[dou]_{_W}{{30,}}",  # Frame.io, Figma
    rf"gh[opsur]_{_A}{{20,}}|github_pat_\w{{20,}}",  # GitHub
    rf"gl(?:pat|dt|rt|rtr|cbt|soat|ptt|ft|ffct|imt|agent|oas)-{_W}{{16,}}",  # GitLab
    rf"GR1348941{_W}{{18,}}|_gitlab_session=[a-f0-9]{{32}}",
    rf"AIza{_W}{{30,}}|ya29\.{_W}{{20,}}|GOCSPX-{_W}{{20,}}",  # Google
    rf"1//0{_W}{{30,}}|4/0A{_W}{{30,}}|AQ\.Ab8{_W}{{30,}}",
    rf"glc_[\w+/=]{{30,}}|glsa_{_A}{{32}}_[a-f0-9]{{8}}",  # Grafana
    rf"gsk_{_A}{{20,}}",  # Groq
    rf"hv[sbr]\.{_W}{{20,}}",  # HashiCorp Vault
    rf"(?<![\w.])s\.(?=[A-Za-z]{{0,23}}\d){_A}{{24}}(?![\w.])",
    rf"HRKU-{_W}{{30,}}",  # Heroku
    r"pat-(?:na|eu|ap)\d-[a-f0-9-]{30,}",  # HubSpot
    rf"hf_{_A}{{20,}}|api_org_{_A}{{30,}}",  # Hugging Face
    rf"ico-{_A}{{32}}",  # Infracost
    rf"jina_{_A}{{40,}}",
    rf"lsv2_[a-z]{{2}}_\w{{20,}}|ls__{_A}{{30,}}",  # LangSmith
    r"(?:api|sdk|mob)-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}",
    rf"lin_(?:api|oauth)_{_A}{{30,}}",  # Linear
    r"(?:pub)?key-[a-f0-9]{32}",  # Mailgun
    rf"[ps]k\.eyJ[\w-]{{40,120}}\.{_W}{{16,}}",  # Mapbox
    rf"secret_{_A}{{40,}}|ntn_{_A}{{40,}}",  # Notion
    rf"(?:nfp|nfo|nfc|nfu)_{_A}{{36,}}",  # Netlify
    rf"NR(?:AK|AA|II|IQ|BR|JS|RA|SP)-{_W}{{19,}}",  # New Relic
    rf"npm_{_A}{{30,}}|oy2[a-z0-9]{{43}}",  # npm, NuGet
    rf"nvapi-{_W}{{20,}}",
    r"API-[A-Z0-9]{26}",  # Octopus
    rf"sha256~{_W}{{40,}}",  # OpenShift
    rf"pplx-{_A}{{20,}}|phc_{_A}{{40,}}|phx_{_A}{{40,}}",  # Perplexity, PostHog
    rf"pcsk_{_A}{{5,}}_{_A}{{40,}}",  # Pinecone
    r"access-(?:sandbox|development|production)-[a-f0-9]{8}-[a-f0-9-]{27}",  # Plaid
    r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}",  # PlanetScale
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}|PMAT-[A-Z0-9]{26}",  # Postman
    rf"pn[ub]_{_A}{{36}}",  # Prefect
    r"pul-[a-f0-9]{40}",  # Pulumi
    rf"pypi-A{_W}{{32,}}",
    rf"rdme_[a-z0-9]{{60,}}|rubygems_[a-f0-9]{{40,}}|rnd_{_A}{{28,}}|r8_{_A}{{20,}}",
    rf"re_{_A}{{8}}_{_A}{{20,}}",  # Resend
    rf"SCW[A-Z0-9]{{17}}(?!{_A})|tk-us-{_W}{{40,}}",  # Scaleway, Scalingo
    rf"SG\.[\w-]{{16,80}}\.{_W}{{16,}}",  # SendGrid
    rf"xkeysib-[a-f0-9]{{60,}}-{_A}{{16}}|xsmtpsib-[a-f0-9]{{60,}}-{_A}{{16}}",  # Brevo
    r"sntry[su]_[\w+/=]{40,}",  # Sentry
    # Shopify
    r"shippo_(?:live|test)_[a-fA-F0-9]{40}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    # Slack
    r"xox[abcdeoprs](?:\.xox[bp])?-[A-Za-z0-9%+/-]{10,}|xapp-[A-Za-z0-9-]{20,}",
    r"sq[pau]_[a-f0-9]{40}",  # SonarQube
    r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}",  # Sourcegraph
    rf"EAAA{_W}{{50,}}|sq0(?:atp|csp|idp)-{_W}{{22,}}",  # Square
    rf"(?:[rs]k|prk)_(?:live|test|prod)_{_A}{{16,}}|whsec_[\w+/=]{{20,}}",  # Stripe
    rf"sb_secret_{_W}{{20,}}|sbp_[a-f0-9]{{40}}",  # Supabase
    r"tskey-[a-z]+-[A-Za-z0-9-]{16,}|tvly-[\w-]{20,}",  # Tailscale, Tavily
    r"tfp_[\w.=-]{40,}",  # Typeform
    # Together, Fireworks
    rf"tgp_v1_{_W}{{30,}}|fw_{_A}{{22,}}|bk[a-z]{{2}}_[a-f0-9]{{40}}",
    rf"1/\d{{16}}:[a-f0-9]{{32}}|token-[a-z0-9]{{5}}:[a-z0-9]{{54}}|cio{_A}{{32}}(?!{_A})",
    rf"[xyz]prv{_A}{{100,}}|nsec1[a-z0-9]{{58}}",  # wallets
    r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,}=*|SCRAM-SHA-\d+\$\d+:[\w+/=$:]{40,}",
    r"(?:SK|AC)[a-f0-9]{32}(?![A-Za-z0-9])",  # Twilio
    rf"vc[pkiar]_{_A}{{24,}}|vercel_blob_rw_{_W}{{30,}}",  # Vercel
    rf"wandb_v1_{_W}{{30,}}|xai-{_A}{{20,}}",
    rf"t1\.{_W}{{20,200}}\.{_W}{{80,}}|AQVN{_W}{{35,}}|y0_{_W}{{40,}}",  # Yandex
    # The beginning of a private key in base64, without or with its first line.
    r"MII[\w+/]{2,4}(?:IBADANBgkqhkiG9w0BAQE|IBAAKCA)[\w+/=]{20,}|MHcCAQEEI[\w+/=]{20,}",
    r"b3BlbnNzaC1rZXktdjEA[\w+/=]{20,}",
    r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFU|BFQyBQUklWQVRF|BPUEVOU1NI)[\w+/=]{20,}",
    r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}",  # hashes of passwords
    r"\$(?:1|5|6|y|7|apr1|argon2(?:id|i|d))\$[\w./+=,$-]{20,}",
    r"pbkdf2[_:-]sha\d+\$\d+\$[\w+/=.$-]{20,}",
)
# Formats that begin with anything are looked for only where the rest of them is.
_WITHIN: Final = tuple(
    (needle, re.compile(rf"(?<![A-Za-z0-9_])(?:{form})"))
    for needle, form in (
        ("Q~", r"[\w~.]{3}\dQ~[\w~.-]{31,40}"),  # Azure AD
        (".", rf"[MNO][\w-]{{23,27}}\.[\w-]{{6}}\.{_W}{{27,}}"),  # Discord
        (".atlasv1.", rf"{_A}{{14}}\.atlasv1\.{_W}{{60,}}"),  # Terraform
        ("-us", r"[a-f0-9]{32}-us\d{1,2}(?!\d)"),  # Mailchimp
        ("mailgun", r"[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![\w-])"),
        ("_mmk", rf"{_A}{{6}}_{_A}{{29}}_mmk"),  # MaxMind
        ("NRAL", rf"{_A}{{36}}NRAL"),  # New Relic
        (":AA", r"(?:bot)?\d{8,10}:AA[\w-]{32,36}(?![\w-])"),  # Telegram
    )
)
# Patterns that begin with plain text are ten times faster,
# so lookbehinds come after it.
_JWT: Final = re.compile(r"eyJ(?<![\w-]eyJ)[\w-]{8,}(?:\.[\w-]*){1,4}")
_LONGEST_SHORT: Final = 80  # of what only looks like a token of five parts
# What follows a mark in a URL; the end of the secret is the end of the URL.
_HOOKS: Final = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/"
    r"|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/"
    r"|\.webhook\.office\.com/|outlook\.office\.com/webhook/|logic\.azure\.com[^\s\"'<>]{0,300}sig="
    r"|hooks\.zapier\.com/hooks/catch/|maker\.ifttt\.com/(?:trigger|use)/"
    r"|hook\.(?:eu|us)\d\.make\.com/|open\.(?:feishu|larksuite)\.(?:cn|com)/open-apis/bot/v2/hook/"
    r"|api\.telegram\.org/bot|hc-ping\.com/|ntfy\.sh/)([\w%+=:@./-]{16,})"
)
_PEM: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
    # The key, perhaps in JSON, quoted, or with line numbers, as a tool shows it.
    r"((?:[A-Za-z0-9+/=\s\\→|\"',;+>#*]|[A-Z][A-Za-z-]{2,20}: [^\n]{0,200}\n)*+)"
    r"(-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
_PEM_RUN: Final = re.compile(r"[A-Za-z0-9+/=]{12,}")
_PEM_AROUND: Final = re.compile(r"[\s\\→|\"',;>#*]+|\\[nr]")
_PUTTY: Final = re.compile(
    r"(Private-Lines: {1,3}\d{1,4}\s{1,4})((?:[ \t>|]*[A-Za-z0-9+/=]{16,100}["
    r" \t]*(?:\\n|\s)*)++)"
)
# The secret half of an AWS key has no prefix: 40 characters,
# near something that gives it away.
_AWS_ID: Final = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")
_AWS_SECRET: Final = re.compile(r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_AWS_NEAR: Final = 200


@cache  # it takes its time, and few runs have a judge
def _tokens() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_FORMATS)})")


def without_tokens(text: str) -> str:
    """The text with placeholders for tokens and private keys."""
    if "PRIVATE KEY" in text:
        text = _PEM.sub(_masked_pem, text)
    if "Private-Lines" in text:
        text = _PUTTY.sub(r"\1<PRIVATE KEY>\n", text)
    text = _AWS_SECRET.sub(_masked_aws, text)  # before the id beside it is masked
    text = _HOOKS.sub(r"\1<TOKEN>", text)
    text = _tokens().sub("<API KEY>", text)
    for needle, form in _WITHIN:
        if needle in text:
            text = form.sub("<API KEY>", text)
    return _JWT.sub(_masked_jwt, text)


def _masked_pem(match: re.Match[str]) -> str:
    """Code may mention the marker without a key; then nothing is masked."""
    if match[3]:
        size = len(_PEM_AROUND.sub("", match[2]))
    else:  # cut off, or followed by prose
        size = sum(map(len, _PEM_RUN.findall(match[2])))
    return "<PRIVATE KEY>" if size >= 32 else match[0]


def _masked_jwt(match: re.Match[str]) -> str:
    """A header alone is no token; an encrypted token has five parts,
    or a signed one no second.
    """
    token = match[0].rstrip(".")
    parts = token.split(".")
    if len(parts) == 1 or not (
        parts[1].startswith("eyJ") or (len(parts) > 2 and len(token) > _LONGEST_SHORT)
    ):
        return match[0]
    return "<TOKEN>" + match[0][len(token) :]


def _masked_aws(match: re.Match[str]) -> str:
    text, start, end = match.string, match.start(), match.end()
    mixed = re.search("[a-z]", match[0]) and re.search("[A-Z]", match[0])
    if (
        not mixed
        or not re.search(r"\d", match[0])
        or re.match("[A-Za-z0-9+/]", text[start - 1 : start])
    ):
        return match[0]
    before, after = text[max(0, start - _AWS_NEAR) : start], text[end : end + _AWS_NEAR]
    near = (
        "secret" in before[-60:].lower()
        or _AWS_ID.search(before)
        or _AWS_ID.search(after)
    )
    return "<SECRET>" if near else match[0]
