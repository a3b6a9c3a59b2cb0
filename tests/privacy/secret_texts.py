"""Texts that hold a secret of each kind, put together here so that no scanner takes this file for a leak."""

AKI = "AKIA" + "Q7RM2TLX4ZPN6VBC"
BODY = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
PEM = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow" + BODY + "\n-----END RSA PRIVATE " + "KEY-----"
JWT = ".".join(("ey" + "JhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", BODY))

SECRETS = {
    "Hugging Face access token": "hf_" + BODY[:34],
    "GitHub token": "ghp_" + BODY[:36],
    "GitLab token": "glpat-" + BODY[:20],
    "AWS access key ID": AKI,
    "Anthropic API key": "sk-ant-api03-" + BODY,
    "OpenAI API key, or one like it": "sk-proj-" + BODY,
    "NVIDIA API key": "nvapi-" + BODY,
    "Google API key": "AIza" + BODY[:35],
    "Google access token": "ya29." + BODY,
    "Slack token": "xoxb-" + BODY[:20],
    "signed token (JWT)": JWT,
    "private key": PEM,
}
"""Kind to secret: those with a form of their own."""

IN_CONTEXT = {
    "user name and password in an address": ("postgres://{}@db/x", "alice:pa55word"),
    "bearer token": ("Authorization: Bearer {}", BODY),
    "user name and password in a header": ("authorization: Basic {}", "YWxpY2U6cGE1NXdvcmQ="),
    "value of an option or variable named as a secret": ("AWS_SECRET_ACCESS_KEY={}", "wJalr+XUtnFEMI/K7MDENG/bPx"),
}
"""Kind to a text and the secret in it: those that only what stands around shows."""


def planted() -> list[tuple[str, str, str]]:
    """Kind, text that holds a secret, and the secret."""
    alone = [(kind, f"a {secret} b", secret) for kind, secret in SECRETS.items()]
    return alone + [(kind, text.format(secret), secret) for kind, (text, secret) in IN_CONTEXT.items()]
