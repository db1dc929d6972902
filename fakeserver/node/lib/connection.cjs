'use strict'
// A connection to the server, enough to steer it: RESP2, replies in the order of the requests.
const net = require('node:net')

const CR = 13

// An error that the server answers with.
class ReplyError extends Error {
  constructor(message) {
    super(message)
    this.name = 'ReplyError'
  }
}

class Connection {
  #waiting = []
  #rest = Buffer.alloc(0)
  #socket

  // Connects; nothing of this keeps the process from its end but a request that is not answered yet.
  static async open({ host, port, password }) {
    const connection = new Connection()
    const socket = net.connect({ host, port, noDelay: true })
    connection.#socket = socket
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    socket.unref()
    socket.on('data', (bytes) => connection.#read(bytes))
    socket.on('error', (error) => connection.#lose(error))
    socket.on('close', () => connection.#lose(new Error('the connection was closed')))
    if (password !== undefined) await connection.call(['AUTH', password])
    return connection
  }

  get isOpen() {
    return !this.#socket.destroyed
  }

  call(words) {
    if (!this.isOpen) return Promise.reject(new Error('the connection is closed'))
    const parts = [`*${words.length}\r\n`]
    for (const word of words) {
      const bytes = Buffer.from(typeof word === 'object' ? word : String(word))
      parts.push(`$${bytes.length}\r\n`, bytes, '\r\n')
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#socket.ref()
      this.#socket.write(Buffer.concat(parts.map((part) => Buffer.from(part))))
    })
  }

  close() {
    this.#socket.destroy()
  }

  #read(bytes) {
    this.#rest = Buffer.concat([this.#rest, bytes])
    try {
      for (let read; (read = reply(this.#rest, 0)); ) {
        this.#rest = this.#rest.subarray(read.end)
        const { resolve, reject } = this.#waiting.shift()
        if (read.value instanceof ReplyError) reject(read.value)
        else resolve(read.value)
      }
    } catch (error) {
      this.#lose(error)
    }
    if (this.#waiting.length === 0) this.#socket.unref()
  }

  #lose(error) {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
    this.#socket.destroy()
  }
}

// The reply that begins at a place and where it ends; null if it is not all there.
function reply(bytes, at) {
  const eol = bytes.indexOf(CR, at)
  if (eol === -1 || eol + 2 > bytes.length) return null
  const line = bytes.toString('utf8', at + 1, eol)
  const end = eol + 2
  switch (String.fromCharCode(bytes[at])) {
    case '+':
      return { value: line, end }
    case '-':
      return { value: new ReplyError(line), end }
    case ':':
      return { value: Number(line), end }
    case '$':
      return bulk(bytes, end, Number(line))
    case '*':
      return array(bytes, end, Number(line))
    default:
      throw new Error(`not a reply: ${line}`)
  }
}

function bulk(bytes, at, length) {
  if (length < 0) return { value: null, end: at }
  if (at + length + 2 > bytes.length) return null
  return { value: bytes.toString('utf8', at, at + length), end: at + length + 2 }
}

function array(bytes, at, length) {
  if (length < 0) return { value: null, end: at }
  const value = []
  let end = at
  for (let n = 0; n < length; n += 1) {
    const item = reply(bytes, end)
    if (!item) return null
    value.push(item.value)
    end = item.end
  }
  return { value, end }
}

module.exports = { Connection, ReplyError }
