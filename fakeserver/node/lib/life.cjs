'use strict'
// What stands in for a process around a function: when a life is over, so are its connections, and it gets no new ones.
//
// A sweep runs each function many times against the same address, and lets it die amid a command. A process would be gone then. A
// function cannot be killed, and the client that it opened would connect again as soon as the next run's server listens there.
const { AsyncLocalStorage } = require('node:async_hooks')
const diagnostics = require('node:diagnostics_channel')

const lives = new AsyncLocalStorage()

class Life {
  #sockets = new Set()
  #abort = new AbortController()
  #over = false

  // Aborted when the life ends before its function does.
  get signal() {
    return this.#abort.signal
  }

  // What `work` gives; all connections that it opens, then and later, belong to this life.
  live(work) {
    return lives.run(this, async () => work())
  }

  // From now on nothing connects; what is connected stays, so that the function may still hear that it was cut off.
  stop() {
    this.#over = true
    this.#abort.abort(new Error('this run was stopped by the sweep'))
  }

  // Closes the connections without telling the client, which would only try to connect again.
  end() {
    this.#over = true
    for (const socket of this.#sockets) {
      socket.removeAllListeners()
      socket.on('error', ignore)
      socket.destroy()
    }
    this.#sockets.clear()
  }

  opens(socket) {
    if (!this.#over) {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      return
    }
    // Neither a failure, after which clients try again, nor a handle or a timer, which would keep this process from its end.
    socket.connecting = true
    socket.connect = socket.setTimeout = () => socket
  }
}

function ignore() {}

// Says so before `net.connect` connects, in the context of whoever calls that.
diagnostics.subscribe('net.client.socket', ({ socket }) => lives.getStore()?.opens(socket))

module.exports = { Life }
