"""A policy for `epitome simulate --policy-command 'python3 policy.py'`: it clears old results."""
import json
import sys

KEEP, LIMIT = 3, 40_000  # Results that stay whole; characters of messages from which old ones are cleared.


def clear(messages):
    """Replaces all results but the last ones by a note: each call keeps its result."""
    contents = [message["content"] for message in messages if isinstance(message["content"], list)]
    results = [part for content in contents for part in content if part["type"] == "tool_result"]
    for part in results[:-KEEP]:
        part["content"] = "[cleared: call the tool again]"
    return messages


context = []  # What is sent: messages of Anthropic's API.
for line in sys.stdin:
    request, answer = json.loads(line), {"ok": True}
    if request["op"] == "reset":  # A session begins. `window` and `overhead` are in the request.
        context = []
    elif request["op"] == "call":  # New messages; the answer is all that is sent to the model now.
        context += request["messages"]
        answer = {"messages": clear(context) if len(json.dumps(context)) > LIMIT else context}
    elif request["op"] == "force":  # A whole history, to be compacted at once. The context stays as it is.
        answer = {"messages": clear(request["messages"])}
    print(json.dumps(answer), flush=True)
