"""Names that upskill passes to fast-agent and that mean nothing here: what to use instead."""

import re
from typing import Final

# Providers whose server speaks Chat Completions, so that "generic." can name its models.
_SERVERS: Final = {
    "aliyun": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "deepseek": "https://api.deepseek.com",
    "groq": "https://api.groq.com/openai/v1",
    "metaai": "https://api.meta.ai/v1",
    "moonshot": "https://api.moonshot.ai/v1",
    "openresponses": "http://localhost:8080/v1",
    "tensorzero": "http://localhost:3000/openai/v1",
    "xai": "https://api.x.ai/v1",
    "zai": "https://api.z.ai/api/paas/v4",
}
# Providers that speak something else.
_OTHERS: Final = {
    "cli": "Agents can't be tested yet; use the model that the agent uses.",
    "codexresponses": "A ChatGPT login can't be used; use openai:ID with OPENAI_API_KEY.",
}
# Short names mean other models from one fast-agent to the next: a model of each family.
_FAMILIES: Final = {
    "deepseek": "hf:deepseek-ai/DeepSeek-V3.2",
    "gemini": "gemini:gemini-3.5-flash",
    "gemma": "hf:google/gemma-3-27b-it",
    "glm": "hf:zai-org/GLM-4.7",
    "gpt-oss": "hf:openai/gpt-oss-120b",
    "grok": "openrouter:x-ai/grok-4",
    "kimi": "hf:moonshotai/Kimi-K2.5",
    "minimax": "hf:MiniMaxAI/MiniMax-M2.5",
    "qwen": "hf:Qwen/Qwen3-8B",
}
_CLAUDE: Final = re.compile(r"(haiku|sonnet|opus)\d*")


def instead_of(name: str) -> tuple[str, str] | None:
    """The problem with a name of fast-agent, and what to use instead; None for other names."""
    wanted = name.partition("?")[0]
    prefix, _, model_id = wanted.partition(".")
    if prefix in _OTHERS:
        return f'"{prefix}" is not supported', _OTHERS[prefix]
    if prefix == "responses" and model_id:
        return '"responses" is not supported', f"Use openai.{model_id}."
    if prefix in _SERVERS and model_id:
        server = f"set GENERIC_BASE_URL={_SERVERS[prefix]} and GENERIC_API_KEY"
        hint = f"Use openrouter:ID, or {server} for generic.{model_id}."
        return f'"{prefix}" is not a known provider', hint
    if match := _CLAUDE.fullmatch(wanted):
        return "unknown model", f'Use "{match[1]}" for the newest one, or anthropic:ID.'
    for family, example in _FAMILIES.items():
        if wanted.lower().startswith(family) and "/" not in wanted:
            return "unknown model", f"Write the model out with its provider, such as {example}."
    return None
