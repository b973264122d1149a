// Tables inside of class "sortable": a heading sorts, fields above the table filter rows.
// Fields are no part of the table, whose columns do not all fit on a phone.
'use strict'

const FEW = 12 // values of a column that are offered in a list

const textOf = (row, column) => row.cells[column].textContent.trim()
const numberOf = text => parseFloat(text.replace(/,/g, ''))

function enhance(table) {
  const rows = [...table.tBodies[0].rows]
  const headings = [...table.tHead.rows[0].cells]
  const found = document.createElement('p')
  found.setAttribute('aria-live', 'polite')
  const filters = document.createElement('div')
  filters.className = 'filters'
  table.closest('.sortable').prepend(filters, found)

  const fields = headings.map((heading, column) => {
    const texts = [...new Set(rows.map(row => textOf(row, column)))]
    const few = texts.length <= FEW
    const numeric = !texts.some(text => text && isNaN(numberOf(text)))
    heading.tabIndex = 0
    heading.onclick = () => sort(heading, column, numeric)
    heading.onkeydown = event => event.key === 'Enter' && heading.onclick()
    if (numeric) return null
    const label = filters.appendChild(document.createElement('label'))
    label.textContent = heading.textContent
    const field = document.createElement(few ? 'select' : 'input')
    if (few) {
      const add = (...option) => field.add(new Option(...option))
      add('all', '')
      texts.sort().forEach(text => add(text))
    } else {
      field.type = 'search'
      field.placeholder = 'part of a name'
    }
    field.oninput = filter
    return label.appendChild(field)
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

  function filter() {
    for (const row of rows) {
      row.hidden = fields.some((field, column) => {
        if (!field || !field.value) return false
        const text = textOf(row, column)
        if (field.type !== 'search') return text !== field.value
        return !text.toLowerCase().includes(field.value.trim().toLowerCase())
      })
    }
    const shown = rows.filter(row => !row.hidden).length
    found.textContent = `${shown} of ${rows.length} rows. A heading sorts by its column.`
  }
  filter()
}

document.querySelectorAll('.sortable table').forEach(enhance)
