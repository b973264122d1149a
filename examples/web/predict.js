// Predicts with a file of `tools/deployment/export.py --whole` in the browser.
'use strict'

ort.env.wasm.numThreads = 1 // more need headers that python -m http.server does not send

const at = id => document.getElementById(id)
const pen = at('canvas').getContext('2d')
const colorOf = (label, alpha = 1) => `hsl(${(label * 222.5) % 360} 80% 45% / ${alpha})`
const say = text => { at('status').textContent = text }
let session = null
let classes = []
let shown = null // the last pixels and their predictions
let camera = null

// The entry 'notes' of the file's metadata, which stands behind the network. A field of
// ONNX's protobuf is a key, a length in groups of 7 bits, and its bytes.
function readNotes(bytes) {
  const start = [0x0a, 5, ...new TextEncoder().encode('notes'), 0x12]
  for (let i = bytes.length - start.length; i >= 0; i--) {
    if (bytes[i] !== start[0] || !start.every((byte, k) => bytes[i + k] === byte)) continue
    let place = i + start.length
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[place++]
      length |= (byte & 127) << shift
      if (byte < 128) break
    }
    return JSON.parse(new TextDecoder().decode(bytes.subarray(place, place + length)))
  }
  return {}
}

async function loadModel(bytes, name) {
  say(`Reading ${name} ...`)
  // a pattern for each size of a photo would stay in memory
  const options = { enableMemPattern: false }
  const made = await ort.InferenceSession.create(bytes, options)
  if (made.inputNames.join() !== 'image') {
    throw Error(`${name} takes no whole images: export it with --whole`)
  }
  session = made
  classes = readNotes(bytes).classes ?? []
  say(`${name}: ${classes.length} classes`)
}

// RGBA pixels (H, W, 4) of a photo or a frame, as they are in the file.
async function pixelsOf(source) {
  const options = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' }
  const bitmap = await createImageBitmap(source, options)
  const page = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
  page.drawImage(bitmap, 0, 0)
  return page.getImageData(0, 0, bitmap.width, bitmap.height)
}

// Outputs of the model by name, each with its data and dims.
async function predict({ data, width, height }) {
  const image = new Uint8Array(3 * width * height)
  for (let from = 0, to = 0; from < data.length; from += 4) {
    image[to++] = data[from]
    image[to++] = data[from + 1]
    image[to++] = data[from + 2]
  }
  return session.run({ image: new ort.Tensor('uint8', image, [height, width, 3]) })
}

const nameOf = label => classes[label] ?? String(label)

// Objects with the least score or more, best first.
function objectsOf({ boxes, scores, labels }, least) {
  return Array.from(scores.data, (score, i) => ({
    score,
    index: i,
    label: Number(labels.data[i]),
    box: Array.from(boxes.data.subarray(4 * i, 4 * i + 4)),
  })).filter(object => object.score >= least)
}

// Probabilities of a mask's cells as a picture, opaque from a half on.
function maskOf(masks, { index, label }) {
  const [, height, width] = masks.dims
  const page = new OffscreenCanvas(width, height).getContext('2d')
  const cells = masks.data.subarray(index * height * width)
  page.fillStyle = colorOf(label, 0.5)
  for (let i = 0; i < height * width; i++) {
    if (cells[i] >= 0.5) page.fillRect(i % width, Math.floor(i / width), 1, 1)
  }
  return page.canvas
}

function drawObjects(found, least) {
  for (const object of objectsOf(found, least)) {
    const [x1, y1, x2, y2] = object.box
    if (found.masks) pen.drawImage(maskOf(found.masks, object), x1, y1, x2 - x1, y2 - y1)
    pen.strokeStyle = colorOf(object.label)
    pen.lineWidth = 2
    pen.strokeRect(x1, y1, x2 - x1, y2 - y1)
    write(`${nameOf(object.label)} ${object.score.toFixed(2)}`, x1, y1)
  }
}

// White letters on a dark patch above a place, or below it at the top of the photo.
function write(text, x, y) {
  const height = 1.3 * parseFloat(pen.font)
  const top = y < height ? y : y - height
  pen.fillStyle = 'rgba(0, 0, 0, 0.7)'
  pen.fillRect(x, top, pen.measureText(text).width + 6, height)
  pen.fillStyle = 'white'
  pen.textBaseline = 'middle'
  pen.fillText(text, x + 3, top + height / 2)
}

function drawLabels({ data }, width, height) {
  const counts = {}
  for (const label of data) counts[label] = (counts[label] ?? 0) + 1
  for (let i = 0; i < data.length; ) {
    let end = i + 1 // a run of one label in a row
    while (end % width && data[end] === data[i]) end++
    pen.fillStyle = colorOf(Number(data[i]), 0.5)
    pen.fillRect(i % width, Math.floor(i / width), end - i, 1)
    i = end
  }
  const share = ([label, n]) => `${nameOf(label)} ${((100 * n) / (width * height)).toFixed(0)} %`
  say(Object.entries(counts).map(share).join(', '))
}

function draw() {
  if (!shown) return
  const { pixels, found } = shown
  const least = Number(at('score').value)
  at('least').value = least
  at('canvas').width = pixels.width // which clears it
  at('canvas').height = pixels.height
  pen.putImageData(pixels, 0, 0)
  pen.font = `${Math.max(12, pixels.width / 50)}px sans-serif`
  if (found.label_map) drawLabels(found.label_map, pixels.width, pixels.height)
  else if (found.boxes) drawObjects(found, least)
  else {
    const scores = Array.from(found.scores.data, (score, label) => ({ score, label }))
    const best = scores.sort((a, b) => b.score - a.score).slice(0, 5)
    say(best.map(x => `${nameOf(x.label)} ${x.score.toFixed(2)}`).join(', '))
  }
}

async function show(source, name) {
  if (!session) return say('Choose a model first.')
  const begin = performance.now()
  const pixels = await pixelsOf(source)
  shown = { pixels, found: await predict(pixels) }
  say(`${name}: ${Math.round(performance.now() - begin)} ms`)
  draw()
}

// Frame by frame, as fast as the model is.
async function watch() {
  if (camera) return stopCamera()
  camera = await navigator.mediaDevices.getUserMedia({ video: true })
  const video = Object.assign(document.createElement('video'), { srcObject: camera })
  await video.play()
  while (camera && session) {
    await show(video, 'camera')
    await new Promise(requestAnimationFrame)
  }
  stopCamera()
}

function stopCamera() {
  camera?.getTracks().forEach(track => track.stop())
  camera = null
}

const told = action => (...given) => action(...given).catch(error => say(String(error)))
const bytesOf = async file => new Uint8Array(await file.arrayBuffer())
const take = told(async file => {
  stopCamera()
  if (file.name.endsWith('.onnx')) await loadModel(await bytesOf(file), file.name)
  else await show(file, file.name)
})

at('model').onchange = at('photo').onchange = event => take(event.target.files[0])
at('camera').onclick = told(watch)
at('score').oninput = draw
document.ondragover = event => event.preventDefault()
document.ondrop = event => {
  event.preventDefault()
  take(event.dataTransfer.files[0])
}

// index.html?model=mine.onnx&photo=photo.jpg loads both from the same server.
async function openAddress() {
  const words = new URLSearchParams(location.search)
  const load = async name => {
    const answer = await fetch(words.get(name))
    if (!answer.ok) throw Error(`${words.get(name)}: ${answer.status}`)
    return answer.blob()
  }
  if (words.has('model')) {
    await loadModel(await bytesOf(await load('model')), words.get('model'))
  }
  if (words.has('photo')) await show(await load('photo'), words.get('photo'))
}

window.ready = told(openAddress)()
