// cuDNN as this project reaches it: the library, opened at run time so that the tool starts where it is
// missing; one handle; and the frontend's descriptor classes. They, unlike the frontend's graph class, tell
// each plan's numerical notes.
#pragma once

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn.h>
#include <cudnn_frontend_ConvDesc.h>
#include <cudnn_frontend_Engine.h>
#include <cudnn_frontend_ExecutionPlan.h>
#include <cudnn_frontend_Filters.h>
#include <cudnn_frontend_Heuristics.h>
#include <cudnn_frontend_OperationGraph.h>
#include <cudnn_frontend_PointWiseDesc.h>
#include <cudnn_frontend_VariantPack.h>

#include <string>

#include "core/variant.hpp"

namespace convmish {

namespace fe = cudnn_frontend;

/// Opens cuDNN at the first call. Empty if it is there, else why not.
const std::string& cudnn_loading_error();

/// "9.19.0"; empty where cuDNN cannot be loaded.
std::string cudnn_version();

/// The handle, its work put on `stream`. One a process, bound to the device that is current at the first
/// call.
cudnnHandle_t cudnn_handle_on(Stream stream);

/// cuDNN's texts may run over several lines; a message of the tool is one.
std::string one_line(std::string text);

/// Throws DeviceError unless `status` says success.
void check_cudnn(cudnnStatus_t status, const char* call);

}  // namespace convmish
