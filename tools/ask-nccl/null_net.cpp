// A network plugin for NCCL that has devices and moves nothing: enough for NCCL to describe a machine, choose and
// estimate, which is all that ask_nccl.cpp wants of it. NULL_NET_DEVICES devices (default 1) of NULL_NET_SPEED Mbit/s
// (default 400000), named null0, null1 ... NCCL takes their place, latency and GPUDirect RDMA from machine-xml's file.
//
// The interface is NCCL's of version 8 of network plugins (NCCL 2.20 and later read it), told here with the names that
// the documentation of NCCL's plugins uses: https://github.com/NVIDIA/nccl/tree/master/plugins/net
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nccl.h>
#include <string>

namespace {

struct Properties {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

int something = 0;  // what every handle points to

ncclResult_t init(void*) { return ncclSuccess; }
ncclResult_t devices(int* count) {
  *count = number("NULL_NET_DEVICES", 1);
  return ncclSuccess;
}
ncclResult_t properties(int device, Properties* out) {
  static char names[16][16];
  std::snprintf(names[device], sizeof names[device], "null%d", device);
  const int host = 1, cuda = 2;
  *out = {names[device],
          nullptr,
          static_cast<std::uint64_t>(device) + 1,
          host | cuda,
          0,
          number("NULL_NET_SPEED", 400000),
          1,
          0,
          1 << 16,
          1,
          0,
          0};
  return ncclSuccess;
}
ncclResult_t give(void** handle) {
  *handle = &something;
  return ncclSuccess;
}
ncclResult_t listen(int, void*, void** comm) { return give(comm); }
ncclResult_t connect(int, void*, void** comm, void**) { return give(comm); }
ncclResult_t accept(void*, void** comm, void**) { return give(comm); }
ncclResult_t register_memory(void*, void*, std::size_t, int, void** handle) { return give(handle); }
ncclResult_t register_dma(void*, void*, std::size_t, int, std::uint64_t, int, void** handle) { return give(handle); }
ncclResult_t deregister(void*, void*) { return ncclSuccess; }
ncclResult_t send(void*, void*, int, int, void*, void** request) { return give(request); }
ncclResult_t receive(void*, int, void**, int*, int*, void**, void** request) { return give(request); }
ncclResult_t flush(void*, int, void**, int*, void**, void** request) { return give(request); }
ncclResult_t test(void*, int* done, int*) {
  *done = 1;
  return ncclSuccess;
}
ncclResult_t close(void*) { return ncclSuccess; }
ncclResult_t device_memory(void*, void*, void** out) { return give(out); }
ncclResult_t consumed(void*, int, void*) { return ncclSuccess; }

}  // namespace

extern "C" {
struct NetPlugin {
  const char* name;
  ncclResult_t (*init)(void* log);
  ncclResult_t (*devices)(int*);
  ncclResult_t (*getProperties)(int, Properties*);
  ncclResult_t (*listen)(int, void*, void**);
  ncclResult_t (*connect)(int, void*, void**, void**);
  ncclResult_t (*accept)(void*, void**, void**);
  ncclResult_t (*regMr)(void*, void*, std::size_t, int, void**);
  ncclResult_t (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  ncclResult_t (*deregMr)(void*, void*);
  ncclResult_t (*isend)(void*, void*, int, int, void*, void**);
  ncclResult_t (*irecv)(void*, int, void**, int*, int*, void**, void**);
  ncclResult_t (*iflush)(void*, int, void**, int*, void**, void**);
  ncclResult_t (*test)(void*, int*, int*);
  ncclResult_t (*closeSend)(void*);
  ncclResult_t (*closeRecv)(void*);
  ncclResult_t (*closeListen)(void*);
  ncclResult_t (*getDeviceMr)(void*, void*, void**);
  ncclResult_t (*irecvConsumed)(void*, int, void*);
};
extern const NetPlugin ncclNetPlugin_v8;
const NetPlugin ncclNetPlugin_v8 = {"Null",          init,         devices,    properties,    listen,  connect, accept,
                                    register_memory, register_dma, deregister, send,          receive, flush,   test,
                                    close,           close,        close,      device_memory, consumed};
}
