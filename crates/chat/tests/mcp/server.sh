# A scripted MCP server: what its tools do is their names.
#
# It answers as a server does, with one line for a request. What it cannot know of JSON it takes
# from the text of the request, whose first id is that of the request.

[ "$1" = broken ] && { echo "first line" >&2; echo "no module named server" >&2; exit 3; }
[ -n "$STARTED" ] && : > "$STARTED"

say() { printf '%s\n' "$1"; }
result() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
text() { result "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
tool() { printf '{"name":"%s","description":"Does %s.","inputSchema":{"type":"object"}}' "$1" "$1"; }

more=
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
        *'"method":"initialize"'*)
            result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},
                "serverInfo":{"name":"scripted","version":"1"}}' | tr -d '\n'
            echo
            ;;
        *'"method":"tools/list"'*)
            list=
            for name in child die echo env fail garbage hang more $more; do
                list="$list${list:+,}$(tool $name)"
            done
            result "{\"tools\":[$list]}"
            ;;
        *'"method":"notifications/cancelled"'*)
            [ -n "$CANCELLED" ] && : > "$CANCELLED"
            ;;
        *'"name":"echo"'*)
            said=${line#*\"arguments\":\{\"text\":\"}
            text "${said%%\"*}"
            ;;
        *'"name":"env"'*) text "$TOKEN $ANTHROPIC_API_KEY $(pwd)" ;;
        *'"name":"fail"'*) result '{"content":[{"type":"text","text":"no"}],"isError":true}' ;;
        *'"name":"garbage"'*)
            say 'this is no JSON'
            say '{"jsonrpc":"2.0","id":99999,"result":{}}'
            say '{"half":'
            text 'still there'
            ;;
        *'"name":"hang"'*) ;;
        *'"name":"die"'*) exit 1 ;;
        *'"name":"child"'*)
            sleep 600 &
            text "$!"
            ;;
        *'"name":"more"'*)
            more=another
            say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
            text 'one more'
            ;;
    esac
done
