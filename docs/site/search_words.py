"""Check that words which a user types into the search of the site lead to help.

docs/search.yml lists them with the places that help. A result is what the theme's
search shows first: it looks for each word and its continuations, counts titles most,
and prefers places that have all words. Run it in the environment of `make docs`.

    python docs/site/search_words.py [SITE]
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from lunr.builder import Builder
from lunr.query import Query
from lunr.stop_word_filter import stop_word_filter

ROOT = Path(__file__).resolve().parents[2]
WORDS = ROOT / 'docs/search.yml'
TAGS = re.compile(r'<[^>]+>')


def build_index(entries: list[dict[str, Any]], fields: dict[str, Any]) -> Any:
    """Return an index of places of a site, as the theme builds it."""
    builder = Builder()
    builder.pipeline.add(stop_word_filter)
    builder.ref('location')
    for name in ('title', 'text'):
        builder.field(name, boost=fields[name]['boost'])
    for entry in entries:
        boost = entry.get('boost', 1)
        plain = {key: TAGS.sub(' ', entry[key]) for key in ('title', 'text')}
        builder.add(dict(plain, location=entry['location']), {'boost': boost})
    return builder.build()


def search(index: Any, words: str) -> list[str]:
    """Return places for words, the best first."""
    terms = re.split(r'[\s-]+', words.lower())  # as the theme
    query = Query(index.fields)
    for term in terms:
        query.term(term, wildcard=Query.WILDCARD_TRAILING)
    scores = {}
    for hit in index.query(query):
        matched = hit['match_data'].metadata
        has_all = all(any(word.startswith(x) for word in matched) for x in terms)
        is_page = '#' not in hit['ref']
        scores[hit['ref']] = hit['score'] * (1 + (is_page + has_all) ** 2)
    return sorted(scores, key=lambda place: -scores[place])


def main() -> None:
    """Print the words whose first result does not help, and fail for any."""
    site = Path(sys.argv[1]) if sys.argv[1:] else ROOT / 'site'
    content = json.loads((site / 'search/search_index.json').read_text('utf-8'))
    index = build_index(content['docs'], content['config']['fields'])
    known = {entry['location'] for entry in content['docs']}
    faults = []
    for words, places in yaml.safe_load(WORDS.read_text('utf-8')).items():
        faults += [f'{words}: no place {x}' for x in places if x not in known]
        results = search(index, words)
        if not results or results[0] not in places:
            faults.append(f'{words}: {", ".join(results[:3]) or "nothing"}')
    if faults:
        sys.exit('search: the first result does not help\n' + '\n'.join(faults))


if __name__ == '__main__':
    main()
