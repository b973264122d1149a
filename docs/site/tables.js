// Tables inside of class "sortable": a heading sorts, fields above the table filter rows.
// Fields are no part of the table, whose columns do not all fit on a phone.
'use strict'

const FEW = 25 // values of a column that are offered in a list

const textOf = (row, column) => row.cells[column].textContent.trim()
const numberOf = text => parseFloat(text.replace(/,/g, ''))

// "SOFT++" and "softpp" are the same word, and so are "R-CNN" and "rcnn"
const plain = text => text.toLowerCase().replace(/\+\+/g, 'pp').replace(/[^a-z0-9]/g, '')

// Whether cells of a row have all words of a query, in any order.
function hasWords(cells, query) {
  const texts = cells.map(plain)
  const words = query.split(/\s+/).map(plain).filter(Boolean)
  return words.every(word => texts.some(text => text.includes(word)))
}

function enhance(table) {
  const rows = [...table.tBodies[0].rows]
  const headings = [...table.tHead.rows[0].cells]
  const found = document.createElement('p')
  found.setAttribute('aria-live', 'polite')
  const filters = document.createElement('div')
  filters.className = 'filters'
  table.closest('.sortable').prepend(filters, found)

  const addField = (name, kind, placeholder) => {
    const label = filters.appendChild(document.createElement('label'))
    label.textContent = name
    const field = label.appendChild(document.createElement(kind))
    if (placeholder) Object.assign(field, { placeholder, type: 'search' })
    field.oninput = filter
    return field
  }
  const words = addField('any column', 'input', 'words, such as mask rcnn soft++')

  const fields = headings.map((heading, column) => {
    const texts = [...new Set(rows.map(row => textOf(row, column)))]
    const few = texts.length <= FEW
    const numeric = !texts.some(text => text && isNaN(numberOf(text)))
    heading.tabIndex = 0
    heading.onclick = () => sort(heading, column, numeric)
    heading.onkeydown = event => event.key === 'Enter' && heading.onclick()
    // the more, the better
    const least = /AP|mIoU|top-1/.test(heading.textContent)
    const placeholder = least ? 'at least' : 'at most'
    if (numeric) return { least, limit: addField(heading.textContent, 'input', placeholder) }
    if (!few) return {}
    const choice = addField(heading.textContent, 'select')
    const add = (...option) => choice.add(new Option(...option))
    add('all', '')
    texts.sort().forEach(text => add(text))
    return { choice }
  })

  function sort(heading, column, numeric) {
    const order = heading.ariaSort === 'ascending' ? 'descending' : 'ascending'
    headings.forEach(other => other.removeAttribute('aria-sort'))
    heading.setAttribute('aria-sort', order)
    const sign = order === 'ascending' ? 1 : -1
    const compare = (a, b) => {
      if (!a || !b) return !a - !b // empty cells come last
      return sign * (numeric ? numberOf(a) - numberOf(b) : a.localeCompare(b))
    }
    rows.sort((a, b) => compare(textOf(a, column), textOf(b, column)))
    table.tBodies[0].append(...rows)
  }

  function isShown(row) {
    if (!hasWords([...row.cells].map(cell => cell.textContent), words.value)) return false
    return fields.every(({ limit, least, choice }, column) => {
      const text = textOf(row, column)
      if (choice && choice.value) return text === choice.value
      const bound = limit ? numberOf(limit.value) : NaN
      return isNaN(bound) || (least ? numberOf(text) >= bound : numberOf(text) <= bound)
    })
  }

  function filter() {
    for (const row of rows) row.hidden = !isShown(row)
    const shown = rows.filter(row => !row.hidden).length
    found.textContent = `${shown} of ${rows.length} rows. A heading sorts by its column.`
  }
  filter()
}

if (typeof document !== 'undefined') document.querySelectorAll('.sortable table').forEach(enhance)
if (typeof module !== 'undefined') module.exports = { hasWords }
