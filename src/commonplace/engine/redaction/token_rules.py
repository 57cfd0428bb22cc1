"""Credentials that can be told by their own form, wherever they stand: a row each, from what providers publish."""

from __future__ import annotations

from commonplace.engine.redaction.rule import Rule, is_mixed_token, is_random, is_token

# Not inside a longer word; an escaped line break, a %XX and a \uXXXX before it do not make it one.
_START = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9a-fA-F]{4})"
    r"|(?<=\x1b\[[0-9]m)|(?<=\x1b\[[0-9]{2}m))"
)
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _token(label: str, triggers: str, pattern: str) -> Rule:
    """A prefix long enough to stand anywhere, even against a letter."""
    return Rule(label, tuple(triggers.split()), pattern, accepts=is_token)


def _word(label: str, triggers: str, pattern: str) -> Rule:
    """A prefix that ordinary words may end in, too."""
    return Rule(label, tuple(triggers.split()), _START + pattern, accepts=is_mixed_token)


TOKENS: tuple[Rule, ...] = (
    # clouds
    _token("aws_access_key", "AKIA ASIA ABIA ACCA", _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}+"),
    _token("aws_session_token", "IQoJ FwoG", r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/=]{60,}+"),
    _token("aws_mws_token", "amzn.mws.", r"amzn\.mws\." + _UUID),
    _token("aws_bedrock_key", "ABSK", r"ABSK[A-Za-z0-9+/]{60,}+=*+"),
    _token("gcp_api_key", "AIza", r"AIza[A-Za-z0-9_-]{35,}+"),
    _token("gcp_oauth_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}+"),
    _word("gcp_refresh_token", "1//0", r"1//0[A-Za-z0-9_-]{30,}+"),
    _token("gcp_client_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    _token("azure_client_secret", "Q~", _START + r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}+"),
    _token("azure_key", "JQQJ99 AzFu AZDO",
           r"(?<![A-Za-z0-9])[A-Za-z0-9_-]{44,76}?(?:JQQJ99|AzFu|AZDO)[A-Za-z0-9_=-]{4,}+"),
    _token("azure_storage_key", "AccountKey=", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{43,}+=*+)"),
    _token("azure_shared_access_key", "SharedAccessKey=", r"SharedAccessKey=(?P<secret>[A-Za-z0-9+/]{32,}+=*+)"),
    _token("azure_sas", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/_-]{30,}+=*+)"),
    _token("digitalocean_token", "_v1_", r"do[opr]_v1_[a-f0-9]{64,}+"),
    _word("alibaba_key", "LTAI", r"LTAI[A-Za-z0-9]{12,}+"),
    _word("tencent_key", "AKID", r"AKID[A-Za-z0-9]{28,}+"),
    _token("cloudflare_origin_key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}+"),
    _token("heroku_key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{30,}+"),
    _word("vault_token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}+"),
    _token("terraform_token", ".atlasv1.", _START + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+"),
    _word("doppler_token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{36,}+"),
    _word("databricks_token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    _token("planetscale_token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{30,}+"),
    _word("supabase_key", "sbp_ sb_secret_", r"(?:sbp_[a-f0-9]{40,}+|sb_secret_[A-Za-z0-9_-]{20,}+)"),
    _word("netlify_token", "nfp_ nfc_", r"nf[pc]_[A-Za-z0-9]{36,}+"),
    _word("vercel_token", "vercel_ vcp_ vci_ vca_ vcr_ vck_", r"(?:vercel_blob_rw_|vc[piark]_)[A-Za-z0-9_]{24,}+"),
    _word("fly_token", "fo1_ fm1r_ fm1a_ fm2_", r"(?:fo1_|fm1[ar]_|fm2_)[A-Za-z0-9+/=_-]{40,}+"),
    _word("render_key", "rnd_", r"rnd_[A-Za-z0-9]{24,}+"),
    _word("pulumi_token", "pul-", r"pul-[a-f0-9]{40,}+"),
    _word("scaleway_key", "SCW", r"SCW[A-Z0-9]{17}(?![A-Za-z0-9])"),
    # beside an access key the secret one needs no name
    Rule("aws_secret_key", ("AKIA", "ASIA"), r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])", is_random),
    # models
    _token("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _token("openrouter_key", "sk-or-", r"sk-or-(?:v1-)?[A-Za-z0-9]{32,}+"),
    _word("langfuse_key", "-lf-", r"[sp]k-lf-" + _UUID),
    _token("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None- T3BlbkFJ",
           r"sk-(?:proj-|svcacct-|admin-|None-|(?=[A-Za-z0-9]{20}T3BlbkFJ))[A-Za-z0-9_-]{20,}+"),
    _word("api_key_sk", "sk-", r"sk-[A-Za-z0-9_-]{20,}+"),
    _word("huggingface_token", "hf_ api_org_", r"(?:hf_|api_org_)[A-Za-z0-9]{30,}+"),
    _word("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{32,}+"),
    _word("replicate_token", "r8_", r"r8_[A-Za-z0-9]{37,}+"),
    _word("perplexity_key", "pplx-", r"pplx-[A-Za-z0-9]{40,}+"),
    _word("xai_key", "xai-", r"xai-[A-Za-z0-9]{60,}+"),
    _word("nvidia_key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{50,}+"),
    _word("cerebras_key", "csk-", r"csk-[a-z0-9]{40,}+"),
    _word("fireworks_key", "fw_", r"fw_[A-Za-z0-9]{22,}+"),
    _word("together_key", "tgp_v1_", r"tgp_v1_[A-Za-z0-9_-]{30,}+"),
    _word("voyage_key", "pa-", r"pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _word("jina_key", "jina_", r"jina_[A-Za-z0-9_-]{50,}+"),
    _word("pinecone_key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,}+"),
    _word("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _word("tavily_key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{30,}+"),
    _word("elevenlabs_key", "sk_", r"sk_[a-f0-9]{48}(?![A-Za-z0-9])"),
    _word("wandb_key", "wandb_v1_", r"wandb_v1_[A-Za-z0-9_-]{30,}+"),
    # code hosts, chat, work
    _token("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,}+"),
    _token("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{50,}+"),
    _token("gitlab_token",
           "glpat- gldt- glrt- glrtr- glptt- glft- glsoat- glimt- glagent- gloas- glcbt- glffct- GR1348941",
           r"(?:gl(?:pat|dt|rtr?|ptt|ft|soat|imt|agent|oas|cbt|ffct)-[A-Za-z0-9_-]{20,}+(?:\.[a-z0-9.]{4,20}+)?"
           r"|GR1348941[A-Za-z0-9_-]{20,}+)"),
    _word("bitbucket_token", "ATBB ATCTT", r"(?:ATBB[A-Za-z0-9]{32,}+|ATCTT3xFfG[A-Za-z0-9_=-]{50,}+)"),
    _token("atlassian_token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{50,}+"),
    _token("slack_token", "xox", r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}+"),
    _token("slack_token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}+"),
    _token("slack_webhook", "hooks.slack.com",
           r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,}+)"),
    _word("discord_token", "MD MT Mj Mz ND NT Nj Nz OD OT",
          r"[MNO][DTjz][AEIMQUYcgk][A-Za-z0-9_-]{21,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}+"),
    _token("discord_webhook", "/api/webhooks/",
           r"discord(?:app)?\.com/api/webhooks/\d{10,25}/(?P<secret>[A-Za-z0-9_-]{40,}+)"),
    _token("telegram_token", ":A", _START + r"\d{8,10}:A[A-Za-z0-9_-]{33,35}+(?![A-Za-z0-9])"),
    _token("teams_webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{60,}+)"),
    _word("notion_token", "ntn_ secret_", r"(?:ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))"),
    _word("linear_key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    _word("figma_token", "figd_", r"figd_[A-Za-z0-9_-]{36,}+"),
    _word("airtable_token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _token("postman_key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _word("asana_token", "1/", r"1/\d{15,17}:[a-f0-9]{32}"),
    _word("dropbox_token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}+"),
    _token("contentful_token", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{40,}+"),
    # package registries
    _word("npm_token", "npm_", r"npm_[A-Za-z0-9]{36,}+"),
    _token("npm_token", "_authToken=", r":_authToken=(?P<secret>[A-Za-z0-9_/+=-]{16,}+)"),
    _token("pypi_token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}+"),
    _token("gem_key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _word("crates_token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _word("nuget_key", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    _token("dockerhub_token", "dckr_", r"dckr_[op]at_[A-Za-z0-9_-]{20,}+"),
    _token("clojars_token", "CLOJARS_", r"CLOJARS_[a-z0-9]{60}"),
    _word("artifactory_key", "AKCp", r"AKCp[A-Za-z0-9]{60,}+"),
    # payment
    _token("stripe_key", "k_live_ k_test_ k_prod_", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}+"),
    _word("stripe_webhook_secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}+"),
    _word("square_token", "sq0", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,}+"),
    _word("square_token", "EAAA", r"EAAA[A-Za-z0-9_-]{56,}+"),
    _word("facebook_token", "EAA", r"EAA[A-Za-z0-9]{80,}+"),
    _token("braintree_token", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    _token("razorpay_key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}+"),
    _token("shopify_token", "shpat_ shpca_ shppa_ shpss_ shptka_", r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32}"),
    _token("flutterwave_key", "FLWSECK", r"FLWSECK(?:_TEST)?-[A-Za-z0-9-]{12,}+"),
    _token("plaid_token", "access-", r"access-(?:sandbox|development|production)-" + _UUID),
    # mail, messages
    _word("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,}+"),
    _word("mailgun_key", "key-", r"key-[a-f0-9]{32}(?![A-Za-z0-9])"),
    _token("mailchimp_key", "-us", _START + r"[a-f0-9]{32}-us\d{1,2}"),
    _word("twilio_key", "SK", r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    _token("brevo_key", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _word("resend_key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+"),
    # watching, testing, the rest
    _token("sentry_token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}+"),
    _token("newrelic_key", "NRAK- NRII- NRJS- NRRA-", r"NR(?:AK|II|JS|RA)-[A-Za-z0-9_-]{19,}+"),
    _token("grafana_token", "glsa_ glc_", r"(?:glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,}+)"),
    _token("dynatrace_token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _word("posthog_key", "phx_ phc_", r"ph[xc]_[A-Za-z0-9]{40,}+"),
    _word("launchdarkly_key", "sdk- api-", r"(?:sdk|api)-" + _UUID),
    _word("mapbox_token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{40,}+\.[A-Za-z0-9_-]{20,}+"),
    _word("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_=-]{100,}+"),
    _token("age_key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{58,}+"),
    _word("k3s_token", "K10", r"K10[a-f0-9]{64}::[a-z]+:[A-Za-z0-9]{16,}+"),
    _word("commonplace_token", "cp_", r"cp_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43,}+"),
    Rule("jwt", ("eyJ",), r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\x1b\[[0-9]{2}m))"
         r"eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]{8,}+){1,3}+"),
)  # fmt: skip
